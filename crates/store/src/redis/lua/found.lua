-- What questions are about.

-- After this place the first question begins.
local first_place = place
-- The key that is looked at, and those that need the books.
local current, WAITING = 1, {}

-- Where the question about a key begins.
local function place_of(index)
    return asked == 'every' and first_place + (index - 2) * QUESTION or first_place
end

-- The text under a key; nothing if it is not there, or something else.
local function text_of(index)
    if FOUND then return FOUND[index] end
    local value = try('GET', KEYS[index])
    return type(value) == 'string' and value
end
