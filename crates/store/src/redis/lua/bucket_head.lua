-- Token buckets, and leaky buckets of both kinds: the moment at which the bucket is full again.
--
-- Seconds, and grains: so and so many make a nanosecond, such that a token takes a whole number.
--
-- A bucket of which nothing is lent is a text: the memory, and five bytes each of seconds and grains.
-- They are taken out and written over by their places, which takes a fraction of the time that digits
-- take. All that is asked of a strict limit comes by here.

local per_nano = tonumber(ARGV[LIMIT + 1])
local capacity_s, capacity_g = tonumber(ARGV[LIMIT + 5]), tonumber(ARGV[LIMIT + 6])
local BASE = BILLION * per_nano
local QUESTION = 4
place = LIMIT + 6

-- How many seconds further a bucket is filled before its key is to be kept for longer again. A key is
-- kept for twice the time that its bucket takes to fill, and two seconds more.
local STEP_S = max(floor(capacity_s / 2), 1)

local NOW_S = tonumber(clock[1])
local NOW_G = clock[2] * 1000 * per_nano

-- What the bucket would be full at if it were empty.
local END_S, END_G = NOW_S + capacity_s, NOW_G + capacity_g
if END_G >= BASE then END_S, END_G = END_S + 1, END_G - BASE end

local NUMBERS = '>I5I5'
local BEGIN = 'bucket ' .. EPOCH_TEXT .. ' '
