-- Whoever gets permits is remembered: nothing about them is quick.
local function answer_from()
    error('it needs the books')
end
