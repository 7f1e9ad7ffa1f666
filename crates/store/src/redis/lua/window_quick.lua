-- Fixed windows, quickly. A key is kept for twice as long as its window, from the first time on that
-- something is spent.

local OTHER = '^window ' .. EPOCH_TEXT .. ' (%d+) (%d+) %d+ %d+$'

-- No count is more than the limit, so it has no more digits, and zeros before them. Those are compared along
-- with what stands before the count, so that few digits are left to look at.
local WIDTH = #format('%d', limit)
local ZEROS, COUNT, DIGITS = string.rep('0', 16 - WIDTH), '^(%d+) ', '%0' .. WIDTH .. 'd'

local function answer_from(from)
    local sub, match, format, call = string.sub, string.match, format, call
    local WIDTH, COUNT, DIGITS = WIDTH, COUNT, DIGITS
    local cost, end_s, end_ns, begin, length, offset, is_lost
    for index = from, #KEYS do
        current = index
        if index == from or asked == 'every' then
            local place = place_of(index)
            local begin_s, begin_ns = tonumber(ARGV[place + 3]), tonumber(ARGV[place + 4])
            cost, end_s, end_ns = tonumber(ARGV[place + 2]), ARGV[place + 5], ARGV[place + 6]
            begin = 'window ' .. EPOCH_TEXT .. ' ' .. end_s .. ' ' .. end_ns .. ' ' .. ZEROS
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
            -- Digits, and nothing else that Lua takes for a number, such as `1e3`.
            local found = match(value, COUNT, length + 1)
            if not found or #found ~= WIDTH then error('it is another text') end
            count = found + 0
        else
            if value then
                local found_s, found_ns = match(value, OTHER)
                found_s, found_ns = found_s + 0, found_ns + 0
                if found_s > NOW_S or (found_s == NOW_S and found_ns > NOW_NS) then
                    error('it has not ended, or it is another text')
                end
            elseif is_lost or call('EXISTS', KEYS[index]) == 1 then
                error('it needs the books')
            end
            value = begin .. format(DIGITS, 0) .. ' 0'
        end
        if cost > 0 and count + cost <= limit then
            local number = format(DIGITS, count + cost)
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
