-- Answers all questions, one after the other.
--
-- `quick(key)` is the answer to a question that is asked once, in the usual case: the key is known and
-- nothing of it is lent. Otherwise it answers nothing, and has done nothing; then `open_books()` has
-- the answer.

local exchange
for index = 2, #KEYS do
    local key, begin = KEYS[index], place
    local answer = ARGV[begin + 1] == '' and quick(key)
    if not answer then
        place = begin
        exchange = exchange or open_books()
        answer = exchange(key)
    end
    HEAD[index + 2] = answer
end
return HEAD
