-- Permits: so many at once. There is nothing to keep beside what is lent.

local most = number()

-- Whoever gets some is remembered.
local function quick() end
