-- Sliding windows, quickly.

local OTHER = '^sliding ' .. EPOCH_TEXT .. ' (%d+) (%d+) %d+ (%d+) %d+$'
local SPAN = length_s * BILLION + length_ns
local EXACT = 2 ^ 53

-- What the last window had in it when this one began; `value` is of another window than this one.
local function last_of(value, begin_s, begin_ns, end_s, end_ns)
    local found_s, found_ns, this = string.match(value, OTHER)
    found_s, found_ns = found_s + 0, found_ns + 0
    if found_s > end_s or (found_s == end_s and found_ns > end_ns) then
        error('the clock has run backwards')
    end
    if found_s ~= begin_s or found_ns ~= begin_ns then return 0 end
    return math.ceil(this / rounding) * rounding
end

local function answer_from(from)
    local sub, format, call = string.sub, format, call
    local cost, begin_s, begin_ns, end_s, end_ns, left, begin, length, offset, is_lost
    for index = from, #KEYS do
        current = index
        if index == from or asked == 'every' then
            local place = place_of(index)
            begin_s, begin_ns = tonumber(ARGV[place + 3]), tonumber(ARGV[place + 4])
            cost, end_s, end_ns = tonumber(ARGV[place + 2]), ARGV[place + 5], ARGV[place + 6]
            begin = 'sliding ' .. EPOCH_TEXT .. ' ' .. end_s .. ' ' .. end_ns .. ' '
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
            last, this = sub(value, length + 1, length + 16) + 0, sub(value, length + 18, length + 33) + 0
            -- Not all of them may be digits: see `window_quick.lua`.
            if sub(value, length + 34, length + 34) ~= ' ' or not (last >= 0 and this >= 0)
                or last % 1 ~= 0 or this % 1 ~= 0 or last > limit + rounding then
                error('it is another text')
            end
        else
            if value then
                last = last_of(value, begin_s, begin_ns, end_s, end_ns)
            elseif is_lost or call('EXISTS', KEYS[index]) == 1 then
                error('it needs the books')
            end
            value = begin .. format('%016d %016d 0', last, 0)
        end
        -- So much of the last window counts. A product that is not exact is worked out elsewhere.
        local counts = last * left
        if counts >= EXACT or SPAN >= EXACT then error('it needs the books') end
        local over = counts % SPAN
        counts = (counts - over) / SPAN + (over > 0 and 1 or 0)
        if cost > 0 and cost <= limit - this - counts then
            if is_begun then
                -- Its time to live stays.
                call('SETRANGE', KEYS[index], offset, format('%016d', this + cost))
            else
                local numbers = format('%016d %016d %d', last, cost, NOW)
                call('SET', KEYS[index], begin .. numbers, 'PX', ttl)
            end
        end
        ANSWERS[index] = value
    end
end
