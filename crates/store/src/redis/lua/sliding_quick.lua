-- Sliding windows, quickly.

local OTHER = '^sliding ' .. EPOCH_TEXT .. ' (%d+) (%d+) %d+ (%d+) %d+$'
-- No count is more than the limit, but for what it is rounded up by: see `window_quick.lua`.
local WIDTH = #format('%d', limit + rounding)
local ZEROS, DIGITS = string.rep('0', 16 - WIDTH), '%0' .. WIDTH .. 'd'
local COUNTS, TAIL = '^(%d+) ' .. ZEROS .. '(%d+) ', DIGITS .. ' ' .. ZEROS .. DIGITS .. ' %d'
local SPAN = length_s * BILLION + length_ns
local EXACT = 2 ^ 53

-- What the last window had in it when this one began; `value` is of another window than this one.
local function last_of(value, begin_s, begin_ns, end_s, end_ns)
    local found_s, found_ns, this = string.match(value, OTHER)
    found_s, found_ns = found_s + 0, found_ns + 0
    if found_s > end_s or (found_s == end_s and found_ns >= end_ns) then
        error('the clock has run backwards, or it is another text')
    end
    if found_s ~= begin_s or found_ns ~= begin_ns then return 0 end
    return math.ceil(this / rounding) * rounding
end

local function answer_from(from)
    local sub, match, format, call = string.sub, string.match, format, call
    local WIDTH, COUNTS, DIGITS, TAIL = WIDTH, COUNTS, DIGITS, TAIL
    local cost, begin_s, begin_ns, end_s, end_ns, left, begin, length, offset, is_lost
    for index = from, #KEYS do
        current = index
        if index == from or asked == 'every' then
            local place = place_of(index)
            begin_s, begin_ns = tonumber(ARGV[place + 3]), tonumber(ARGV[place + 4])
            cost, end_s, end_ns = tonumber(ARGV[place + 2]), ARGV[place + 5], ARGV[place + 6]
            begin = 'sliding ' .. EPOCH_TEXT .. ' ' .. end_s .. ' ' .. end_ns .. ' ' .. ZEROS
            length, offset = #begin, format('%d', #begin + 17)
            end_s, end_ns = tonumber(end_s), tonumber(end_ns)
            left = (end_s - NOW_S) * BILLION + (end_ns - NOW_NS)
            if NOW_S < begin_s or (NOW_S == begin_s and NOW_NS < begin_ns) or left <= 0 then
                error('it is another window')
            end
            is_lost = LOSS_S and
                (LOSS_S > begin_s or (LOSS_S == begin_s and LOSS_NS >= begin_ns))
        end
        local value, last, this = text_of(index), 0, 0
        local is_begun = value and sub(value, 1, length) == begin
        if is_begun then
            -- Digits, and nothing else that Lua takes for a number, such as `1e3`.
            last, this = match(value, COUNTS, length + 1)
            if not last or #last ~= WIDTH or #this ~= WIDTH then error('it is another text') end
            last, this = last + 0, this + 0
        else
            if value then
                last = last_of(value, begin_s, begin_ns, end_s, end_ns)
            elseif is_lost or call('EXISTS', KEYS[index]) == 1 then
                error('it needs the books')
            end
            value = begin .. format(TAIL, last, 0, 0)
        end
        -- Somebody else wrote it.
        if last > limit + rounding then error('it is another text') end
        -- So much of the last window counts. A product that is not exact is worked out elsewhere.
        local counts = last * left
        if counts >= EXACT or SPAN >= EXACT then error('it needs the books') end
        local over = counts % SPAN
        counts = (counts - over) / SPAN + (over > 0 and 1 or 0)
        if cost > 0 and cost <= limit - this - counts then
            if is_begun then
                -- Its time to live stays.
                call('SETRANGE', KEYS[index], offset, format(DIGITS, this + cost))
            else
                call('SET', KEYS[index], begin .. format(TAIL, last, cost, NOW), 'PX', ttl)
            end
        end
        ANSWERS[index] = value
    end
end
