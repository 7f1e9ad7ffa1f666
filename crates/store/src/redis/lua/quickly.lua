-- Answers what can be answered quickly: questions that are asked once, about keys that nothing is lent
-- of. `answer_from(index)` answers from there on; it stands still where the case is another, after it
-- has noted the place, and so it does where what is found is not ours and cannot be reckoned with.

if asked == 'each' then
    for index = 2, #KEYS do WAITING[index - 1] = index end
else
    while current < #KEYS do
        if not pcall(answer_from, current + 1) then WAITING[#WAITING + 1] = current end
    end
    if #WAITING == 0 then return table.concat(ANSWERS, '\n') end
end
