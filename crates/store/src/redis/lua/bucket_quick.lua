-- Buckets, quickly.

local function answer_from(from)
    local sub, packed, unpacked = string.sub, struct.pack, struct.unpack
    local KEYS, ANSWERS, FOUND, NUMBERS, call = KEYS, ANSWERS, FOUND, NUMBERS, call
    local NOW_S, NOW_G, END_S, END_G, BASE = NOW_S, NOW_G, END_S, END_G, BASE
    local BEGIN, length, offset = BEGIN, #BEGIN, format('%d', #BEGIN)
    local spends, span_s, span_g
    for index = from, #KEYS do
        current = index
        if index == from or asked == 'every' then
            local place = place_of(index)
            span_s, span_g = tonumber(ARGV[place + 3]), tonumber(ARGV[place + 4])
            spends = ARGV[place + 2] ~= '0' and span_s >= 0
        end
        local value, full, part = FOUND and FOUND[index], 0, 0
        if not FOUND then value = text_of(index) end
        local is_known = value
        if value then
            if #value ~= length + 10 or sub(value, 1, length) ~= BEGIN then
                error('it is another text')
            end
            full, part = unpacked(NUMBERS, value, length + 1)
            if part >= BASE then error('it is another text') end
        else
            if LOST > 0 or call('EXISTS', KEYS[index]) == 1 then error('it needs the books') end
            value = BEGIN .. packed(NUMBERS, 0, 0)
        end
        if spends then
            local full_s, full_g = full, part
            if full < NOW_S or (full == NOW_S and part < NOW_G) then
                full_s, full_g = NOW_S, NOW_G
            end
            full_s, full_g = full_s + span_s, full_g + span_g
            if full_g >= BASE then full_s, full_g = full_s + 1, full_g - BASE end
            if full_s < END_S or (full_s == END_S and full_g <= END_G) then
                local numbers = packed(NUMBERS, full_s, full_g)
                if is_known and (full_s == full or
                    full_s - full_s % STEP_S == full - full % STEP_S) then
                    -- Its time to live stays.
                    call('SETRANGE', KEYS[index], offset, numbers)
                else
                    call('SET', KEYS[index], BEGIN .. numbers, 'PX', ttl)
                end
            end
        end
        ANSWERS[index] = value
    end
end
