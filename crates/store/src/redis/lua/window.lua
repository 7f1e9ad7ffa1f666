-- Fixed windows: when the window ends, and what was spent in it.
--
-- Where windows end is the business of whoever asks, who names two of them: the one that the server's
-- clock should be in, and the next.

local limit, is_short = number(), text() == '1'

local window = { fields = { 'end', 'rest', 'count' } }

function window.read(ask)
    ask.begin_s, ask.begin_ns, ask.middle_s, ask.middle_ns, ask.end_s, ask.end_ns =
        number(), number(), number(), number(), number(), number()
end

-- A short window that was forgotten is taken for spent. So is a long one of which nothing at all is
-- known; if only the last moments are missing, it goes on with what was kept.
function window.open(account, lost)
    account.lost = (lost > 0 and (is_short or not KEPT)) and lost or nil
end

function window.settle(account, ask)
    local begin_s, begin_ns, end_s, end_ns = ask.begin_s, ask.begin_ns, ask.middle_s, ask.middle_ns
    if before(account.s, account.ns, begin_s, begin_ns) then return false end
    if not before(account.s, account.ns, end_s, end_ns) then
        begin_s, begin_ns, end_s, end_ns = end_s, end_ns, ask.end_s, ask.end_ns
        if not before(account.s, account.ns, end_s, end_ns) then return false end
    end
    if account['end'] ~= end_s or account.rest ~= end_ns then
        account['end'], account.rest, account.count = end_s, end_ns, 0
    end
    if account.lost then
        local s, ns = split(account.lost)
        if not before(s, ns, begin_s, begin_ns) then account.count = limit end
    end
    return true
end

function window.state(account)
    return account.count, 0
end

function window.hold_down() end

function window.left(account)
    return max(limit - account.count, 0)
end

function window.spend(account, ask)
    if ask.cost == 0 or ask.cost > window.left(account) then return false end
    account.count = account.count + ask.cost
    return true
end

function window.take(account, count)
    account.count = account.count + count
end

function window.give(account, count)
    account.count = max(account.count - count, 0)
end

function window.window_end(account)
    return account['end'], account.rest
end

local NOW_S, NOW_NS = split(NOW)

-- The key is kept for twice as long as its window, from the first time on that something is spent.
function window.quick(key)
    local found = redis.pcall('HMGET', key, 'epoch', 'due', 'end', 'rest', 'count')
    if found[1] ~= EPOCH_TEXT or found[2] ~= '0' then return nil end
    local end_s, end_ns, count = tonumber(found[3]), tonumber(found[4]), tonumber(found[5])
    if not end_s or not end_ns or not count then return nil end
    local begin = place + 2
    -- The window is the one that was named first, and the clock is in it.
    if end_s ~= tonumber(ARGV[begin + 3]) or end_ns ~= tonumber(ARGV[begin + 4])
        or before(NOW_S, NOW_NS, tonumber(ARGV[begin + 1]), tonumber(ARGV[begin + 2]))
        or not before(NOW_S, NOW_NS, end_s, end_ns) then
        return nil
    end
    local cost = tonumber(ARGV[begin])
    place = begin + 6
    if cost > 0 and count + cost <= limit then redis.call('HSET', key, 'count', count + cost) end
    return { RECORD, NOW, count, 0 }
end

return answers(window)
