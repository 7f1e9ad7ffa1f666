-- Fixed windows: when the window ends, and what was spent in it.
--
-- Where windows end is the business of whoever asks, who names two of them: the one that the server's
-- clock should be in, and the next.

local limit, is_short = number(), text() == '1'

local NOW_S, NOW_NS = split(NOW)

-- The key is kept for twice as long as its window, from the first time on that something is spent.
local function quick(key)
    local found = try('HMGET', key, 'epoch', 'due', 'end', 'rest', 'count')
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
    if cost > 0 and count + cost <= limit then
        call('HSET', key, 'count', digits(count + cost))
    end
    return { RECORD, NOW, count, 0 }
end
