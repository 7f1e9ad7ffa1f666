-- Permits: so many at once. There is nothing to keep beside what is lent.

local most = tonumber(ARGV[LIMIT + 1])
local QUESTION = 2
place = LIMIT + 1
