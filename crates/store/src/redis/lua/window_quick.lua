-- Fixed windows, quickly. A key is kept for twice as long as its window, from the first time on that
-- something is spent.

local OTHER = '^window ' .. EPOCH_TEXT .. ' (%d+) (%d+) %d+ %d+$'

local function answer_from(from)
    local sub, format, call = string.sub, format, call
    local cost, end_s, end_ns, begin, length, offset, is_lost
    for index = from, #KEYS do
        current = index
        if index == from or asked == 'every' then
            local place = place_of(index)
            local begin_s, begin_ns = tonumber(ARGV[place + 3]), tonumber(ARGV[place + 4])
            cost, end_s, end_ns = tonumber(ARGV[place + 2]), ARGV[place + 5], ARGV[place + 6]
            begin = 'window ' .. EPOCH_TEXT .. ' ' .. end_s .. ' ' .. end_ns .. ' '
            length, offset = #begin, format('%d', #begin)
            end_s, end_ns = tonumber(end_s), tonumber(end_ns)
            if NOW_S < begin_s or (NOW_S == begin_s and NOW_NS < begin_ns) or NOW_S > end_s
                or (NOW_S == end_s and NOW_NS >= end_ns) then
                error('it is another window')
            end
            is_lost = LOSS_S and
                (LOSS_S > begin_s or (LOSS_S == begin_s and LOSS_NS >= begin_ns))
        end
        local value, count = text_of(index), 0
        local is_begun = value and sub(value, 1, length) == begin
        if is_begun then
            count = sub(value, length + 1, length + 16) + 0
            -- To see that all of them are digits would take a tenth of the time of all else. What is left
            -- beside them are whole numbers in another form, such as `1e3`: they count as what they are,
            -- are reported, and are digits afterwards.
            if sub(value, length + 17, length + 17) ~= ' ' or not (count >= 0 and count % 1 == 0) then
                error('it is another text')
            end
        else
            if value then
                local found_s, found_ns = string.match(value, OTHER)
                found_s, found_ns = found_s + 0, found_ns + 0
                if found_s > end_s or (found_s == end_s and found_ns > end_ns) then
                    error('the clock has run backwards')
                end
            elseif is_lost or call('EXISTS', KEYS[index]) == 1 then
                error('it needs the books')
            end
            value = begin .. format('%016d 0', 0)
        end
        if cost > 0 and count + cost <= limit then
            local number = format('%016d', count + cost)
            if is_begun then
                -- Its time to live stays.
                call('SETRANGE', KEYS[index], offset, number)
            else
                call('SET', KEYS[index], begin .. number .. format(' %d', NOW), 'PX', ttl)
            end
        end
        ANSWERS[index] = value
    end
end
