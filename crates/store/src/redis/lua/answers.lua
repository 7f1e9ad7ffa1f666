-- Answers what is left to answer, one question after the other.

local exchange = open_books()
for _, index in ipairs(WAITING) do
    if asked ~= 'each' then place = place_of(index) end
    ANSWERS[index] = exchange(KEYS[index])
end
return table.concat(ANSWERS, '\n')
