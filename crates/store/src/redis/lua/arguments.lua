-- The next argument.
local function text()
    place = place + 1
    return ARGV[place]
end
local function number()
    place = place + 1
    return tonumber(ARGV[place])
end
