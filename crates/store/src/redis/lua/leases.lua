-- What is agreed about leases, and what stands in one.

-- Terms of lending. Without a hold nothing is lent, to whoever asks: others may hold something all the same,
-- and nobody for longer than longest.
local hold_s, hold_ns, trip_s, trip_ns, few, on_the_way, lane, pause, longest_s, longest_ns
do
    local words = {}
    for word in string.gmatch(terms, '%S+') do words[#words + 1] = tonumber(word) end
    hold_s, hold_ns, trip_s, trip_ns, few, on_the_way, lane, pause, longest_s, longest_ns =
        unpack(words)
end
local is_lent = hold_s >= 0
-- How many tokens are lent before they come in, at most.
local AHEAD = floor(few * 2 / 5)

local MOST_LEASES, STRICT_MEMORY = 256, 1

-- Of what stands in a hash.
local VERSION = '2'

-- A lease is a field of the hash, its numbers in this order.
local SEQUENCE, BEGAN, GRANTED, USED, RETURNED = 1, 2, 3, 4, 5
local UNTIL_S, UNTIL_NS, OVER, FORGOTTEN_S, FORGOTTEN_NS, HUNGRY = 6, 7, 8, 9, 10, 11
-- What is not in yet of it, in how many nanoseconds from the answer on it is, in how many lanes, and after
-- how many the node asks again.
local PROMISED, ALL_IN, LANES, TURN = 12, 13, 14, 15
-- The answer to the node's latest exchange.
local AT, FIRST, SECOND, COST, LENT, ESCROW, TOKENS = 16, 17, 18, 19, 20, 21, 22
local LEASE_NUMBERS = 22

local function new_lease(sequence, began)
    local lease = { sequence, began }
    for index = 3, LEASE_NUMBERS do lease[index] = 0 end
    return lease
end

local LEASE_FORMAT = string.sub(string.rep('%d ', LEASE_NUMBERS), 1, -2)

local function out(lease)
    return lease[GRANTED] - lease[USED] - lease[RETURNED]
end

-- Whether the numbers of a lease can be ones. All leases together hold what is lent, so none holds more.
local function is_lease(account, lease)
    if #lease ~= LEASE_NUMBERS or lease[OVER] > 1 or lease[HUNGRY] > 1 then return false end
    -- What is promised comes in by lanes, of which an account of anything but a bucket has none.
    if lease[PROMISED] > 0 and not (account.lanes and lease[LANES] >= 1) or lease[LANES] > 4 then
        return false
    end
    for index = 1, LEASE_NUMBERS do
        -- Sums since the lease began can be more than there ever is at once.
        if lease[index] >= 2 ^ 55 then return false end
    end
    local held = out(lease)
    return lease[GRANTED] >= 2 ^ 53 or (held >= 0 and held <= account.escrow)
end

-- The lease in a line. One that makes no sense is noted: nothing is written to such a key, which others
-- in the same call have nothing to do with.
local function read_lease(account, line)
    local lease = {}
    -- Whatever else Lua takes for a number, we write digits.
    if not string.find(line, '[^%d ]') then
        for word in string.gmatch(line, '%d+') do lease[#lease + 1] = tonumber(word) end
        if is_lease(account, lease) then return lease end
    end
    account.is_garbled = true
    return nil
end

-- When something happens to a lease next, in microseconds, rounded up: the clock knows no others.
local function next_of(lease)
    local s, ns = lease[UNTIL_S], lease[UNTIL_NS]
    if lease[OVER] == 1 then s, ns = lease[FORGOTTEN_S], lease[FORGOTTEN_NS] end
    return s * MILLION + math.ceil(ns / 1000)
end
