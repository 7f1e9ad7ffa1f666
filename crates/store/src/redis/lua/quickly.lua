-- Answers what can be answered quickly: questions that are asked once, about keys that nothing is lent
-- of. `answer_from(index)` answers from there on; it stands still where the case is another, after it
-- has noted the place, and so it does where what is found is not ours and cannot be reckoned with.

-- What is asked of whom: the same of every key, all of which are different (all); the same of every
-- key (same); something like it of each (every); or anything of each.
place = place + 1
asked, first_place = ARGV[place], place

if asked == 'each' then
    for index = 2, #KEYS do WAITING[index - 1] = index end
else
    FOUND = asked == 'all' and call('MGET', unpack(KEYS, 2))
    while current < #KEYS do
        if not pcall(answer_from, current + 1) then WAITING[#WAITING + 1] = current end
    end
    if #WAITING == 0 then return table.concat(ANSWERS, '\n') end
end
