-- What is lent before it comes in, and who may use when what of it: `Lanes` of the core in Lua, and whose turn
-- it is to ask.

-- How many nanoseconds of so many are left that began when the lease was last answered.
local function left_of(account, lease, ns)
    return max(ns - (account.at - lease[AT]) * 1000, 0)
end

-- What of a lease may not be in yet, at most.
local function still_promised(account, lease)
    return left_of(account, lease, lease[ALL_IN]) > 0 and lease[PROMISED] or 0
end

-- What is promised to nodes of what comes in next, and when the last of them asks again: nanoseconds after
-- the time of the account, up to which a quarter each of what comes in is promised, and the last. Nothing
-- if there is none.
local LANES_FORMAT = '%d %d %d %d %d'
local function read_lanes(account, line, at)
    local lanes = { string.match(line, '^(%d+) (%d+) (%d+) (%d+) (%d+)$') }
    for index = 1, 5 do
        local ns = tonumber(lanes[index]) or -1
        if not (ns >= 0 and ns < 2 ^ 53) then return nil end
        lanes[index] = max(ns - (account.at - at) * 1000, 0)
    end
    return lanes
end

-- Somebody has given back what takes so many nanoseconds to come in: what is promised ends sooner.
local function drain(lanes, time)
    local rest = { unpack(lanes, 1, 4) }
    table.sort(rest, function(one, other) return one > other end)
    local sum, used, level = 0, 0, 0
    while used < 4 and rest[used + 1] > level do
        used = used + 1
        sum = sum + rest[used]
        level = math.ceil(max(sum - time * 4, 0) / used)
    end
    for index = 1, used do rest[index] = level end
    for index = 1, 4 do lanes[index] = rest[index] end
end

-- Promises what takes so many nanoseconds to come in, in at most so many lanes: those that are free
-- soonest. Returns when the last of it is in, and in how many lanes it comes in at the end.
local function fill(lanes, time, most)
    local rest = { unpack(lanes, 1, 4) }
    table.sort(rest)
    local sum, used, level = time * 4, 0, math.huge
    while used < most and rest[used + 1] < level do
        used = used + 1
        sum = sum + rest[used]
        level = math.ceil(sum / used)
    end
    for index = 1, used do rest[index] = level end
    for index = 1, 4 do lanes[index] = rest[index] end
    return level, used
end

-- Has the node keep back what is not in yet of what was lent to it, and that no other keeps back.
local function promise(account, budget, lease, want, lent, nodes)
    if lent == 0 then return end
    local lanes, missing = account.lanes, budget.missing(account)
    local uncovered = missing - floor((lanes[1] + lanes[2] + lanes[3] + lanes[4]) / 4)
    if uncovered <= 0 then return end
    local time = min(uncovered, budget.time_of(lent))
    local tokens = budget.tokens_of(time)
    local most = min(max(math.ceil(want / lane), math.ceil(4 / nodes)), 4)
    local all_in, used = fill(lanes, time, most)
    local before = still_promised(account, lease)
    if before > 0 then
        -- It may or may not have heard of the others: they are told as one, the last of all that come in.
        all_in, used = max(all_in, left_of(account, lease, lease[ALL_IN])), 4
    end
    -- As of now, which is when it is answered.
    lease[PROMISED], lease[ALL_IN], lease[LANES] = before + tokens, all_in, used
    lease.is_promised = true
end

-- Says when a node asks again that found too little, as one of so many.
local function take_turn(account, lease, nodes)
    local next = left_of(account, lease, lease[TURN])
    if next == 0 then next = account.lanes[5] + floor(pause / nodes) end
    lease.turn = min(max(next, pause), 2 * pause)
    account.lanes[5] = max(account.lanes[5], lease.turn)
end

-- What is left and what comes in next, for one of so many nodes.
local function ahead(account, budget, left, nodes, least)
    local part = math.ceil(AHEAD / nodes)
    local near = min(AHEAD, floor(floor(AHEAD * 3 / 2) / nodes) + on_the_way)
    near = budget.left_ahead(account, near)
    if near >= left + part then
        return min(near, max(left + floor(part * 5 / 4), least))
    end
    return min(budget.left_ahead(account, AHEAD), max(left + floor(part * 7 / 8), least))
end
