-- Sliding logs: every request of the last window, in a list. First stands a line about all of them,
-- then a line for each moment at which something was spent, oldest first: microseconds and cost.
--
-- A log lends nothing and remembers nobody.

local limit, window = number(), number()

local TITLE = '^log 1 (%d+) (%d+) (%d+)$'

local function entry(line)
    local at, cost = string.match(line or '', '^(%d+) (%d+)$')
    return tonumber(at), tonumber(cost)
end

-- Lines that are looked at in one go.
local STEP = 100

local function title(at, spent)
    return format('log 1 %.0f %.0f %.0f', EPOCH, at, spent)
end

-- Forgets what is over at `at`, and returns what is left of the sum.
local function forget(key, at, spent)
    local first = entry(call('LINDEX', key, 1))
    if not first or first + window > at then return spent end
    -- A server without memory refuses this, and would not refuse what follows.
    call('LSET', key, 0, title(at, spent))
    -- A log that nobody asked for long goes at once.
    local last = entry(call('LINDEX', key, -1))
    if last + window <= at then
        call('DEL', key)
        return 0
    end
    local over, is_done = 0, false
    while not is_done do
        for _, line in ipairs(call('LRANGE', key, over + 1, over + STEP)) do
            local moment, cost = entry(line)
            is_done = moment + window > at
            if is_done then break end
            over, spent = over + 1, spent - cost
        end
    end
    -- The last of those that are over makes room for the title.
    call('LTRIM', key, over, -1)
    call('LSET', key, 0, title(at, spent))
    return spent
end

-- When the oldest have gone that have to go for `cost` to fit: the moment at which the last of them
-- was spent.
local function last_in_the_way(key, spent, cost)
    local from = 1
    while true do
        local lines = call('LRANGE', key, from, from + STEP - 1)
        for _, line in ipairs(lines) do
            local at, gone = entry(line)
            spent = spent - gone
            if spent <= limit - cost then return at end
        end
        if #lines < STEP then return 0 end
        from = from + STEP
    end
end

-- Adds what was spent at `at`. `spent` is the sum with it.
local function record(key, at, cost, spent)
    local last, before_it = entry(call('LINDEX', key, -1))
    if not last then
        call('RPUSH', key, title(at, spent), format('%.0f %.0f', at, cost))
    elseif last == at then
        call('LSET', key, -1, format('%.0f %.0f', at, before_it + cost))
    else
        call('RPUSH', key, format('%.0f %.0f', at, cost))
    end
    call('LSET', key, 0, title(at, spent))
    call('PEXPIRE', key, ttl)
end

local function decide(key)
    local cost = number()
    local head = try('LINDEX', key, 0)
    if type(head) == 'table' and head.err then return { FOREIGN, head.err } end
    local epoch, latest, spent = string.match(head or '', TITLE)
    if head and not epoch then return { FOREIGN, 'another list' } end
    local at = max(NOW, tonumber(latest or 0))
    spent = tonumber(spent or 0)
    if tonumber(epoch or 0) ~= EPOCH and LOST > 0 then
        -- Full at the moment of the loss, whatever was kept of it.
        if head then
            call('LSET', key, 0, head)
            call('DEL', key)
        end
        spent = limit
        record(key, LOST, limit, limit)
    end
    spent = forget(key, at, spent)
    local fits = cost <= max(limit - spent, 0)
    local retry = 0
    if fits and cost > 0 then
        spent = spent + cost
        record(key, at, cost, spent)
    elseif not fits and cost <= limit then
        retry = last_in_the_way(key, spent, cost)
    end
    local last = entry(call('LINDEX', key, -1)) or 0
    return { RECORD, at, spent, last, cost, fits and 1 or 0, retry, -1, 0 }
end

for index = 2, #KEYS do HEAD[index + 2] = decide(KEYS[index]) end
return HEAD
