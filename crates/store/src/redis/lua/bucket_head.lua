-- Token buckets, and leaky buckets of both kinds: the moment at which the bucket is full again.
--
-- Seconds, and grains: so and so many make a nanosecond, such that a token takes a whole number.

local per_nano, tokens = number(), number()
local interval_s, interval_g, capacity_s, capacity_g = number(), number(), number(), number()
local BASE = BILLION * per_nano

-- How many seconds further a bucket is filled before its key is to be kept for longer again. A key is
-- kept for twice the time that its bucket takes to fill, and two seconds more.
local STEP_S = max(floor(capacity_s / 2), 1)

local NOW_S, now_ns = split(NOW)
local NOW_G = now_ns * per_nano
local END_S, END_G = add(NOW_S, NOW_G, capacity_s, capacity_g, BASE)

local function quick(key)
    local found = try('HMGET', key, 'epoch', 'due', 'full', 'part')
    if found[1] ~= EPOCH_TEXT or found[2] ~= '0' then return nil end
    local full, part = tonumber(found[3]), tonumber(found[4])
    if not full or not part then return nil end
    local cost, span_s, span_g = ARGV[place + 2], tonumber(ARGV[place + 3]), tonumber(ARGV[place + 4])
    place = place + 4
    local answer = { RECORD, NOW, full, part }
    if cost == '0' or span_s < 0 then return answer end
    local turn_s, turn_g = later(full, part, NOW_S, NOW_G)
    local full_s, full_g = add(turn_s, turn_g, span_s, span_g, BASE)
    if before(END_S, END_G, full_s, full_g) then return answer end
    call('HSET', key, 'full', digits(full_s), 'part', digits(full_g))
    if floor(full_s / STEP_S) ~= floor(full / STEP_S) then call('PEXPIRE', key, ttl) end
    return answer
end
