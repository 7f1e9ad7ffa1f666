-- Sliding windows: what was spent in this window, and in the last one.
--
-- Of the last one so much counts as is less than a window ago, rounded up to whole tokens.

local limit, is_short = number(), text() == '1'
local length_s, length_ns, rounding = number(), number(), number()

-- Nothing is quick here.
local function quick() end
