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

-- Forgets what is over at `at`, and returns what is left of the sum.
local function forget(key, at, spent)
    while true do
        local first, cost = entry(call('LINDEX', key, 0))
        if not first or first + window > at then return spent end
        call('LPOP', key)
        spent = spent - cost
    end
end

-- When the oldest have gone that have to go for `cost` to fit: the moment at which the last of them
-- was spent.
local function last_in_the_way(key, spent, cost)
    local from, step = 0, 100
    while true do
        local lines = call('LRANGE', key, from, from + step - 1)
        for _, line in ipairs(lines) do
            local at, gone = entry(line)
            spent = spent - gone
            if spent <= limit - cost then return at end
        end
        if #lines < step then return 0 end
        from = from + step
    end
end

local function record(key, at, cost)
    local last, before_it = entry(call('LINDEX', key, -1))
    local line = format('%.0f %.0f', at, cost)
    if last == at then
        call('LSET', key, -1, format('%.0f %.0f', at, before_it + cost))
    else
        call('RPUSH', key, line)
    end
end

local function decide(key)
    local cost = number()
    local head = try('LINDEX', key, 0)
    if type(head) == 'table' and head.err then return { FOREIGN, head.err } end
    local epoch, latest, spent = string.match(head or '', TITLE)
    if head and not epoch then return { FOREIGN, 'another list' } end
    if head then call('LPOP', key) end
    local at = max(NOW, tonumber(latest or 0))
    spent = tonumber(spent or 0)
    if tonumber(epoch or 0) ~= EPOCH and LOST > 0 then
        -- Full at the moment of the loss, whatever was kept of it.
        call('DEL', key)
        spent = limit
        record(key, LOST, limit)
    end
    spent = forget(key, at, spent)
    local fits = cost <= max(limit - spent, 0)
    local retry = 0
    if fits and cost > 0 then
        record(key, at, cost)
        spent = spent + cost
    elseif not fits and cost <= limit then
        retry = last_in_the_way(key, spent, cost)
    end
    local last = entry(call('LINDEX', key, -1)) or 0
    if last > 0 then
        call('LPUSH', key, format('log 1 %.0f %.0f %.0f', EPOCH, at, spent))
        call('PEXPIRE', key, ttl)
    end
    return { RECORD, at, spent, last, cost, fits and 1 or 0, retry, -1, 0 }
end

for index = 2, #KEYS do HEAD[index + 2] = decide(KEYS[index]) end
return HEAD
