-- Sliding logs: every request of the last window, in a list. First stands a line about all of them,
-- then a line for each moment at which something was spent, oldest first: microseconds and cost.
--
-- A log lends nothing and remembers nobody.

local limit, window = tonumber(ARGV[LIMIT + 1]), tonumber(ARGV[LIMIT + 2])
place = LIMIT + 2

local TITLE = '^log 1 (%d+) (%d+) (%d+)$'

-- Numbers up to here can be reckoned with.
local EXACT = 2 ^ 53

local function entry(line)
    local at, cost = string.match(line or '', '^(%d+) (%d+)$')
    at, cost = tonumber(at), tonumber(cost)
    if at and at < EXACT and cost < EXACT then return at, cost end
end

-- Lines that are looked at in one go.
local STEP = 100

local function title(at, spent)
    return format('log 1 %.0f %.0f %.0f', EPOCH, at, spent)
end

-- How many entries are over at `at`, and what is left of the sum. Nothing if the log makes no sense.
local ALL = -1
local function over_at(key, at, spent)
    local first = call('LINDEX', key, 1)
    if not first then
        -- Nothing was spent.
        if spent == 0 then return 0, 0 end
        return nil
    end
    local first_at, last_at = entry(first), entry(call('LINDEX', key, -1))
    if not first_at or not last_at then return nil end
    if first_at + window > at then return 0, spent end
    if last_at + window <= at then return ALL, 0 end
    local over = 0
    while true do
        for _, line in ipairs(call('LRANGE', key, over + 1, over + STEP)) do
            local moment, cost = entry(line)
            if not moment or cost > spent then return nil end
            if moment + window > at then return over, spent end
            over, spent = over + 1, spent - cost
        end
    end
end

-- Forgets what is over at `at`; `spent` is the sum without it.
local function forget(key, at, over, spent)
    if over == 0 then return end
    -- A server without memory refuses this, and would not refuse what follows.
    call('LSET', key, 0, title(at, spent))
    -- A log that nobody asked for long goes at once.
    if over == ALL then
        call('DEL', key)
        return
    end
    -- The last of those that are over makes room for the title.
    call('LTRIM', key, over, -1)
    call('LSET', key, 0, title(at, spent))
end

-- When the oldest have gone that have to go for `cost` to fit: the moment at which the last of them
-- was spent. The first so many are over. Nothing if the log makes no sense.
local function last_in_the_way(key, over, spent, cost)
    local from = over + 1
    while true do
        local lines = call('LRANGE', key, from, from + STEP - 1)
        for _, line in ipairs(lines) do
            local at, gone = entry(line)
            if not at then return nil end
            spent = spent - gone
            if spent <= limit - cost then return at end
        end
        if #lines < STEP then return nil end
        from = from + STEP
    end
end

-- Adds what was spent at `at`. `spent` is the sum with it.
local function record(key, at, cost, spent)
    local line = call('LINDEX', key, -1)
    local last, before_it = entry(line)
    if not line then
        call('RPUSH', key, title(at, spent), format('%.0f %.0f', at, cost))
    elseif last == at then
        call('LSET', key, -1, format('%.0f %.0f', at, before_it + cost))
    else
        call('RPUSH', key, format('%.0f %.0f', at, cost))
    end
    call('LSET', key, 0, title(at, spent))
    call('PEXPIRE', key, ttl)
end

-- What was spent at `moment` in vain: the place of its entry from the end, the moment and the cost in it;
-- 0 if there is nothing to take back, and nothing if the log makes no sense. It was counted then, or later
-- if the log had seen a later time; in that case this may take from somebody else who is forgotten sooner,
-- which favours nobody.
local function spent_at(key, at, moment, cost)
    if cost > limit or moment + window <= at then return 0 end
    local from, index, found, found_cost = -1, 0, nil, nil
    while true do
        local lines = call('LRANGE', key, from - STEP + 1, from)
        for back = #lines, 1, -1 do
            local then_at, then_cost = entry(lines[back])
            if not then_at and not string.match(lines[back], TITLE) then return nil end
            if not then_at or then_at < moment then break end
            index, found, found_cost = from - #lines + back, then_at, then_cost
        end
        if #lines < STEP or index ~= from - STEP + 1 then return index, found, found_cost end
        from = from - STEP
    end
end

-- Takes so much back from an entry. `spent` is the sum without it.
local function take_back(key, at, spent, gone, index, found, found_cost)
    -- A server without memory refuses this, and would not refuse what follows.
    call('LSET', key, 0, title(at, spent))
    if gone < found_cost then
        call('LSET', key, index, format('%.0f %.0f', found, found_cost - gone))
    else
        call('LREM', key, -1, format('%.0f %.0f', found, found_cost))
    end
end

-- Leaves a key that has its whole budget. One that counts as full because of a loss gets something back.
local function forgotten(key, head, at)
    if head then
        call('LSET', key, 0, head)
        call('DEL', key)
    end
    -- A key that is not there would be taken for one that was lost.
    if LOST > 0 then
        call('RPUSH', key, title(at, 0))
        call('PEXPIRE', key, ttl)
    end
    return format('%d %d', FORGOTTEN, (head or LOST > 0) and 1 or 0)
end

local function answer(at, spent, last, cost, fits, retry)
    return format('%d %d %d %d %d %d %d -1 0', RECORD, at, spent, last, cost, fits, retry)
end

-- The entries of a log that is not known: full at the moment of a loss, and what the key brings along,
-- which is a part of that if it was spent later. What is over is left out, but for the loss.
local function entries_of_new(at, is_lost, carried, since)
    local entries = {}
    if is_lost and since < LOST then carried = 0 end
    if is_lost then entries[1] = { LOST, limit - carried } end
    if carried > 0 and since + window > at then entries[#entries + 1] = { since, carried } end
    return entries
end

local function decide(key)
    local word, carried, ago = text(), 0, 0
    if word == CARRIED then
        carried, ago = min(number(), limit), number()
        -- Of a log that is known it never counts.
        number()
        word = text()
    end
    local cost, undone, moment = number(), nil, nil
    if word == UNDO then undone, cost, moment = cost, 0, number() end
    local head = try('LINDEX', key, 0)
    if type(head) == 'table' and head.err then return format('%d %s', FOREIGN, head.err) end
    local epoch, latest, spent = string.match(head or '', TITLE)
    if head and not epoch then
        return string.sub(head, 1, 6) == 'log 1 ' and GARBLED or format('%d another list', FOREIGN)
    end
    epoch, latest, spent = tonumber(epoch or 0), tonumber(latest or 0), tonumber(spent or 0)
    local at = max(NOW, latest)
    if word == FORGET then return forgotten(key, head, at) end
    if max(epoch, latest, spent) >= EXACT then return GARBLED end
    local is_lost = epoch ~= EPOCH and LOST > 0
    if is_lost or not head then
        if head then carried = 0 end
        local entries = entries_of_new(at, is_lost, carried, max(at - ago, 0))
        -- Whoever only looks leaves nothing behind.
        if not head and cost == 0 and not undone then
            local last = 0
            for _, one in ipairs(entries) do
                if one[1] + window > at and one[2] > 0 then
                    spent, last = spent + one[2], one[1]
                end
            end
            return answer(at, spent, last, 0, 1, 0)
        end
        -- Whatever was kept of one that was lost.
        if head then
            call('LSET', key, 0, head)
            call('DEL', key)
        end
        spent = 0
        for _, one in ipairs(entries) do
            if one[2] > 0 then
                spent = spent + one[2]
                record(key, one[1], one[2], spent)
            end
        end
    end
    -- First all of it is looked at, and then something is written, or nothing.
    local over
    over, spent = over_at(key, at, spent)
    if not over then return GARBLED end
    local index, found, found_cost = 0, nil, nil
    if undone then index, found, found_cost = spent_at(key, at, moment, undone) end
    if not index then return GARBLED end
    local gone = found and min(undone, found_cost) or 0
    spent = spent - gone
    local fits, retry = cost <= max(limit - spent, 0), 0
    if not fits and cost <= limit then retry = last_in_the_way(key, over, spent, cost) end
    if spent < 0 or not retry then return GARBLED end
    forget(key, at, over, spent + gone)
    if gone > 0 then take_back(key, at, spent, gone, index, found, found_cost) end
    if fits and cost > 0 then
        spent = spent + cost
        record(key, at, cost, spent)
    end
    local last = entry(call('LINDEX', key, -1)) or 0
    return answer(at, spent, last, cost, fits and 1 or 0, retry)
end

for index = 2, #KEYS do ANSWERS[index] = decide(KEYS[index]) end
return table.concat(ANSWERS, '\n')
