-- Sliding windows: what was spent in this window, and in the last one.
--
-- Of the last one so much counts as is less than a window ago, rounded up to whole tokens.
--
-- A window of which nothing is lent is a text: the memory, seconds and nanoseconds of the end, the
-- counts of the last one and of this one, and when something was first spent. The count of this one is
-- written over at its place.

local limit, is_short = tonumber(ARGV[LIMIT + 1]), ARGV[LIMIT + 2] == '1'
local length_s, length_ns, rounding = tonumber(ARGV[LIMIT + 3]), tonumber(ARGV[LIMIT + 4]), tonumber(ARGV[LIMIT + 5])
local QUESTION = 8
place = LIMIT + 5

local NOW_S, NOW_NS = tonumber(clock[1]), clock[2] * 1000
local NUMBERS = '%d %d %016d %016d'

-- As with a fixed window, and a length later, as long as a window counts also in the next.
local LOSS = window_loss(is_short)
local LOSS_S = LOSS and floor(LOSS / MILLION) + length_s
local LOSS_NS = LOSS and (LOSS % MILLION) * 1000 + length_ns
if LOSS_S and LOSS_NS >= BILLION then LOSS_S, LOSS_NS = LOSS_S + 1, LOSS_NS - BILLION end
