-- Fixed windows: when the window ends, and what was spent in it.
--
-- Where windows end is the business of whoever asks, who names two of them: the one that the server's
-- clock should be in, and the next.
--
-- A window of which nothing is lent is a text: the memory, seconds and nanoseconds of the end, the
-- count, and when something was first spent. The count is written over at its place.

local limit, is_short = tonumber(ARGV[LIMIT + 1]), ARGV[LIMIT + 2] == '1'
local QUESTION = 8
place = LIMIT + 2

local NOW_S, NOW_NS = tonumber(clock[1]), clock[2] * 1000
local NUMBERS = '%d %d %016d'

-- When the windows of keys that are not there were lost, if they were.
local LOSS = window_loss(is_short)
local LOSS_S = LOSS and floor(LOSS / MILLION)
local LOSS_NS = LOSS and (LOSS % MILLION) * 1000
