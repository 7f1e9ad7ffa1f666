-- Lua counts in doubles, which are exact up to 2^53. Nanoseconds since 1970, and the grains of a
-- nanosecond that buckets count in, are beyond that. So a time is a pair: whole seconds, and the
-- rest in units of which `base` make a second. Counts of tokens are below 2^50.

-- A whole number as a text: quicker than what becomes of a number that is handed to a command.
local function digits(count)
    return format('%d', count)
end

-- Whether one time is before another.
local function before(s, rest, other_s, other_rest)
    return s < other_s or (s == other_s and rest < other_rest)
end

local function later(s, rest, other_s, other_rest)
    if before(s, rest, other_s, other_rest) then return other_s, other_rest end
    return s, rest
end

local function add(s, rest, more_s, more_rest, base)
    s, rest = s + more_s, rest + more_rest
    if rest >= base then return s + 1, rest - base end
    return s, rest
end

-- The difference, or nothing if that is less.
local function subtract(s, rest, less_s, less_rest, base)
    if before(s, rest, less_s, less_rest) then return 0, 0 end
    s, rest = s - less_s, rest - less_rest
    if rest < 0 then return s - 1, rest + base end
    return s, rest
end

-- So many times a span: sixteen bits of the number at a time, from the highest on, so that no
-- product exceeds 2^53. The span's rest is below 2^36.
local function times(count, s, rest, base)
    local sum_s, sum_rest = 0, 0
    for shift = 48, 0, -16 do
        local digit = floor(count / 2 ^ shift) % 65536
        local moved = sum_rest * 65536
        local carry = floor(moved / base)
        sum_s, sum_rest = sum_s * 65536 + carry, moved - carry * base
        local product = digit * rest
        carry = floor(product / base)
        sum_s, sum_rest = add(sum_s + digit * s + carry, sum_rest, 0, product - carry * base, base)
    end
    return sum_s, sum_rest
end

-- How often a span fits into another, and whether nothing is left over. A guess in doubles is off by
-- a few at the most, and put right with exact products.
local function quotient(s, rest, by_s, by_rest, base)
    local guess = max(floor((s * base + rest) / (by_s * base + by_rest)), 0)
    local product_s, product_rest = times(guess, by_s, by_rest, base)
    while before(s, rest, product_s, product_rest) do
        guess = guess - 1
        product_s, product_rest = subtract(product_s, product_rest, by_s, by_rest, base)
    end
    while true do
        local next_s, next_rest = add(product_s, product_rest, by_s, by_rest, base)
        if before(s, rest, next_s, next_rest) then break end
        guess, product_s, product_rest = guess + 1, next_s, next_rest
    end
    return guess, product_s == s and product_rest == rest
end

local function split(micros)
    local s = floor(micros / MILLION)
    return s, (micros - s * MILLION) * 1000
end
