-- Buckets, quickly.

local function answer_from(from)
    local sub, packed, unpacked = string.sub, struct.pack, struct.unpack
    local KEYS, ANSWERS, FOUND, NUMBERS, call = KEYS, ANSWERS, FOUND, NUMBERS, call
    local NOW_S, NOW_G, END_S, END_G, BASE, STEP_S = NOW_S, NOW_G, END_S, END_G, BASE, STEP_S
    local BEGIN, length, whole, offset = BEGIN, #BEGIN, #BEGIN + 10, format('%d', #BEGIN)
    local is_every = asked == 'every'
    -- What all buckets are like afterwards that are full now, as most are.
    local rested_s, rested_g, rested
    local spends, span_s, span_g
    for index = from, #KEYS do
        current = index
        if index == from or is_every then
            local place = place_of(index)
            span_s, span_g = tonumber(ARGV[place + 3]), tonumber(ARGV[place + 4])
            spends = ARGV[place + 2] ~= '0' and span_s >= 0
            if spends then
                rested_s, rested_g = NOW_S + span_s, NOW_G + span_g
                if rested_g >= BASE then rested_s, rested_g = rested_s + 1, rested_g - BASE end
                -- A bucket that cannot spare it when it is full never can.
                spends = rested_s < END_S or (rested_s == END_S and rested_g <= END_G)
                rested = packed(NUMBERS, rested_s, rested_g)
            end
        end
        local value, full, part
        if FOUND then value = FOUND[index] else value = text_of(index) end
        if value then
            if #value ~= whole or sub(value, 1, length) ~= BEGIN then
                error('it is another text')
            end
            full, part = unpacked(NUMBERS, value, length + 1)
            if part >= BASE then error('it is another text') end
        elseif LOST > 0 or call('EXISTS', KEYS[index]) == 1 then
            error('it needs the books')
        end
        if spends then
            local full_s, numbers = rested_s, rested
            if value and (full > NOW_S or (full == NOW_S and part > NOW_G)) then
                local full_g
                full_s, full_g = full + span_s, part + span_g
                if full_g >= BASE then full_s, full_g = full_s + 1, full_g - BASE end
                numbers = (full_s < END_S or (full_s == END_S and full_g <= END_G)) and
                    packed(NUMBERS, full_s, full_g)
            end
            if not numbers then
                -- There is too little in it.
            elseif full_s == full or (value and
                full_s - full_s % STEP_S == full - full % STEP_S) then
                -- Its time to live stays.
                call('SETRANGE', KEYS[index], offset, numbers)
            else
                call('SET', KEYS[index], BEGIN .. numbers, 'PX', ttl)
            end
        end
        ANSWERS[index] = value or BEGIN .. packed(NUMBERS, 0, 0)
    end
end
