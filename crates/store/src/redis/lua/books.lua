-- The books of one key, and how they are lent from: `Account` and `Lender` of the core in Lua.
--
-- This is the body of a function that is called when the first question needs it: most calls of a
-- script do without (see `answers.lua`), and to make its functions takes time.
--
-- A budget is a table of what differs between algorithms:
--   name                 the word that its texts begin with, if it has any
--   fields               the names of its numbers in the key's hash; a text has them in this order
--   to_text(account), of_text(text)  its numbers in a text, and back
--   read(account)        its arguments of a question
--   open(account, former)  the numbers of a key that is not known, or of a former memory; `lost` says when
--                        it was lost, if it was
--   settle(account)      lets time pass up to account.at; false if it is in none of the windows named
--   hold_down(account, s, ns)
--   advance(account)     what else there is to do when time has passed; not of all budgets
--   spend(account, cost) whether it was spent
--   left(account), take(account, tokens), give(account, tokens)
--   left_ahead(account, ahead)  what is left with up to so many that come in next; not of all budgets,
--                        and only those that have it have the next three
--   missing(account)     how many nanoseconds it is until all that was taken has come in
--   time_of(tokens), tokens_of(ns)  how long so many take to come in, and how many so long, rounded up
--   carry(account, ask)  takes for spent what the key had spent of another limit at ask.since_s and
--                        ask.since_ns, as far as there is so much; not of all budgets
--   undo(account, ask)   takes back what was spent at ask.then_s and ask.then_ns in vain
--   window_end(account)  a time, or nothing
--   reusable             whether what was used is still lent: permits

local function keep_lease(account, node, lease)
    account.changed[node] = lease
end

-- Whether all of them are numbers, or texts of digits alone: Lua takes more for a number than we write,
-- such as `1.5` and `0x10`. Beyond a bound sums would not come out even, and somebody might wait for it.
local function is_number_list(found, from)
    for index = from, #found do
        local word = found[index]
        if type(word) ~= 'number' and not string.find(word or '', '^%d+$') then return false end
        if tonumber(word) >= 2 ^ 53 then return false end
    end
    return true
end

-- What a key of which nothing is lent says, in a text: the memory, and the numbers of the budget.
local function read_text(key, budget)
    local line = try('GET', key)
    if type(line) ~= 'string' then return nil end
    local name, epoch, rest = string.match(line, '^(%a+) (%d+) (.*)$')
    if not name or name ~= budget.name then return nil, 'another text' end
    local numbers, at = budget.of_text(rest)
    if not numbers or not is_number_list({ epoch, at or 0, unpack(numbers) }, 1) then
        return nil, NO_NUMBER
    end
    -- As it would stand in a hash.
    local found = { VERSION, epoch, at or '0', '0', '0', '0', '0' }
    for index = 1, #budget.fields do found[#found + 1] = numbers[index] end
    return found, line
end

local function as_text(account, budget)
    return budget.name .. ' ' .. EPOCH_TEXT .. ' ' .. budget.to_text(account)
end

-- The numbers of a window, and the time, in digits.
local function digits_of(account, names)
    local numbers = {}
    for index, name in ipairs(names) do numbers[index] = account[name] end
    return format(NUMBERS, unpack(numbers)) .. ' ' .. digits(account.at)
end

local function of_digits(text, count)
    local words = {}
    for word in string.gmatch(text, '%S+') do words[#words + 1] = word end
    if #words ~= count + 1 or string.find(text, '[^%d ]') or table.concat(words, ' ') ~= text then
        return nil
    end
    return words, table.remove(words)
end

-- What the books of a former version are called. They have the same numbers in common.
local OLDER = 'an older version'

-- The account under a key, or why there is none.
local COMMON = { 'v', 'epoch', 'at', 'escrow', 'hungry', 'leases', 'due' }
local function load(key, budget)
    local names = budget.all_fields
    local found, line = try('HMGET', key, unpack(names)), nil
    if found.err then
        local wrong = found.err
        found, line = read_text(key, budget)
        if not found then return nil, line or wrong end
    end
    local is_known = found[1] == VERSION
    local account = { key = key, changed = {}, is_changed = false, is_known = is_known,
        line = line }
    if found[1] and not is_known then
        local is_older = found[1] == '1' and is_number_list({ unpack(found, 2, #COMMON) }, 1)
        return nil, is_older and OLDER or 'another version'
    end
    if not is_known and call('EXISTS', key) == 1 then return nil, 'another hash' end
    local lanes = budget.left_ahead and not line and table.remove(found, #names)
    if is_known and not is_number_list(found, 2) then return nil, NO_NUMBER end
    if is_known then
        account.epoch, account.at = tonumber(found[2]), max(tonumber(found[3]), NOW)
        account.escrow, account.hungry = tonumber(found[4]), tonumber(found[5])
        account.leases, account.due = tonumber(found[6]), tonumber(found[7])
        for index, name in ipairs(budget.fields) do
            account[name] = tonumber(found[index + #COMMON])
        end
        if lanes then
            account.lanes = read_lanes(account, lanes, tonumber(found[3]))
            if not account.lanes then return nil, NO_NUMBER end
        end
    else
        for _, name in ipairs(budget.fields) do account[name] = 0 end
    end
    account.s, account.ns = split(account.at or NOW)
    local former = account.epoch
    if former ~= EPOCH then
        -- Leases of another memory are over, and what they were counts as used.
        if is_known and account.leases > 0 then account.is_stale = true end
        account.epoch, account.at = EPOCH, account.at or NOW
        account.escrow, account.hungry, account.leases, account.due = 0, 0, 0, 0
        budget.open(account, former)
    end
    return account
end

-- Nothing if one of them makes no sense.
local function all_leases(account)
    local leases = {}
    local all = account.is_stale and {} or call('HGETALL', account.key)
    for index = 1, #all, 2 do
        local node = all[index]
        if string.sub(node, 1, 6) == 'lease ' and account.changed[node] == nil then
            leases[node] = read_lease(account, all[index + 1])
        end
    end
    if account.is_garbled then return nil end
    for node, lease in pairs(account.changed) do leases[node] = lease or nil end
    return leases
end

-- Lets time pass: leases end, each at its moment, and the balance has grown as far as it could
-- beside them.
local function advance(account, budget)
    if account.leases > 0 and account.due <= account.at then
        local leases, ending = all_leases(account), {}
        if not leases then return end
        for node, lease in pairs(leases) do
            if lease[OVER] == 0 and next_of(lease) <= account.at then
                ending[#ending + 1] = node
            end
        end
        table.sort(ending, function(one, other)
            one, other = leases[one], leases[other]
            return before(one[UNTIL_S], one[UNTIL_NS], other[UNTIL_S], other[UNTIL_NS])
        end)
        for _, node in ipairs(ending) do
            local lease = leases[node]
            -- Until its very end it kept the balance down, and then it counts as used.
            budget.hold_down(account, lease[UNTIL_S], lease[UNTIL_NS])
            account.escrow = account.escrow - out(lease)
            lease[USED] = lease[USED] + out(lease)
            account.hungry = account.hungry - lease[HUNGRY]
            lease[OVER], lease[HUNGRY] = 1, 0
            keep_lease(account, node, lease)
        end
        account.due = math.huge
        for node, lease in pairs(leases) do
            if lease[OVER] == 1 and next_of(lease) <= account.at then
                account.changed[node] = false
                account.leases = account.leases - 1
            else
                account.due = min(account.due, next_of(lease))
            end
        end
        if account.leases == 0 then account.due = 0 end
        account.is_changed = true
    end
    budget.hold_down(account, account.s, account.ns)
    if budget.advance then budget.advance(account) end
end

local function save(account, budget)
    if not account.is_changed then return end
    if account.leases == 0 and budget.name then
        call('SET', account.key, as_text(account, budget), 'PX', ttl)
        return
    end
    -- A server without memory refuses to write, and would not refuse to delete.
    if account.line then
        call('SET', account.key, account.line, 'KEEPTTL')
        call('DEL', account.key)
    elseif account.is_stale then
        call('HSET', account.key, 'v', VERSION)
        call('DEL', account.key)
    end
    local sets = { 'v', VERSION, 'limit', limit_text, 'epoch', EPOCH_TEXT, 'at', digits(account.at),
        'escrow', digits(account.escrow), 'hungry', digits(account.hungry),
        'leases', digits(account.leases), 'due', digits(account.due) }
    for _, name in ipairs(budget.fields) do
        sets[#sets + 1] = name
        sets[#sets + 1] = digits(account[name])
    end
    if account.lanes then
        sets[#sets + 1] = 'lanes'
        sets[#sets + 1] = format(LANES_FORMAT, unpack(account.lanes))
    end
    local gone = {}
    for node, lease in pairs(account.changed) do
        if lease then
            sets[#sets + 1] = node
            sets[#sets + 1] = format(LEASE_FORMAT, unpack(lease))
        else
            gone[#gone + 1] = node
        end
    end
    call('HSET', account.key, unpack(sets))
    if #gone > 0 then call('HDEL', account.key, unpack(gone)) end
    call('PEXPIRE', account.key, ttl)
end

-- How long what is lent now is kept: no longer than its window.
local function hold_of(account, budget)
    if not is_lent then return 0, 0 end
    local end_s, end_ns = budget.window_end(account)
    if not end_s then return hold_s, hold_ns end
    local left_s, left_ns = subtract(end_s, end_ns, account.s, account.ns, BILLION)
    if before(left_s, left_ns, hold_s, hold_ns) then return left_s, left_ns end
    return hold_s, hold_ns
end

-- Takes note of what a node has used and returned, as far as it holds so much. A lease that is over
-- makes room for a new one, and so does one of which nothing is held by a node that knows of none: it
-- has let it go.
local function settle(account, budget, lease, ask)
    if lease[OVER] == 1 or (ask.lease_epoch < 0 and out(lease) == 0) then
        account.hungry = account.hungry - lease[HUNGRY]
        for index = GRANTED, TURN do lease[index] = 0 end
        lease[BEGAN] = account.at
    end
    if ask.lease_epoch ~= EPOCH or ask.lease_began ~= lease[BEGAN] then return end
    if not budget.reusable then
        local used = min(max(ask.used - lease[USED], 0), out(lease))
        lease[USED] = lease[USED] + used
        account.escrow = account.escrow - used
    end
    local returned = min(max(ask.returned - lease[RETURNED], 0), out(lease))
    lease[RETURNED] = lease[RETURNED] + returned
    budget.give(account, returned)
    account.escrow = account.escrow - returned
    local unpromised = min(returned, still_promised(account, lease))
    if unpromised > 0 then
        lease[PROMISED] = lease[PROMISED] - unpromised
        -- Rounded down, as what is promised must not become less than what is missing.
        drain(account.lanes, max(budget.time_of(unpromised) - 1, 0))
    end
end

-- A place for a node that has none: a free one, or that of the node that was not heard of for
-- longest of those who hold nothing.
local function admit(account, ask)
    if account.leases >= MOST_LEASES then
        local idle, idle_lease
        for node, lease in pairs(all_leases(account) or {}) do
            if out(lease) == 0 and (not idle or before(lease[UNTIL_S], lease[UNTIL_NS],
                idle_lease[UNTIL_S], idle_lease[UNTIL_NS])) then
                idle, idle_lease = node, lease
            end
        end
        if not idle then return nil end
        account.hungry = account.hungry - idle_lease[HUNGRY]
        account.changed[idle] = false
        account.leases = account.leases - 1
    end
    account.leases = account.leases + 1
    return new_lease(ask.sequence, account.at)
end

-- Lends up to `want`, and at most the node's share of what is left, or all of it if that is little. If
-- it has all and wants more, it gets a part of what comes in next.
local function lend(account, budget, lease, want, least)
    if not lease or not is_lent then return 0 end
    local left = budget.left(account)
    local s, ns = hold_of(account, budget)
    if not before(trip_s, trip_ns, s, ns) then return 0 end
    local others = account.hungry - lease[HUNGRY]
    local share = max(math.ceil(left / (others + 2)), min(left, few))
    local lent = min(want, max(share, least))
    if lent >= left and budget.left_ahead then
        if want > left then take_turn(account, lease, others + 1) end
        lent = max(min(lent, left), min(want, ahead(account, budget, left, others + 1, least)))
    else
        lent = min(lent, left)
    end
    if lent < least then return 0 end
    budget.take(account, lent)
    account.escrow = account.escrow + lent
    lease[GRANTED] = lease[GRANTED] + lent
    if budget.left_ahead then promise(account, budget, lease, want, lent, others + 1) end
    return lent
end

-- Writes down when the lease ends, and what the node was told.
local function remember(account, budget, lease, ask, record)
    account.hungry = account.hungry - lease[HUNGRY]
    lease[HUNGRY] = (ask.want > 0 or out(lease) > 0) and 1 or 0
    account.hungry = account.hungry + lease[HUNGRY]
    local memory_s, memory_ns = STRICT_MEMORY, 0
    if is_lent and lease[HUNGRY] == 1 then
        memory_s, memory_ns = add(hold_s, hold_ns, hold_s, hold_ns, BILLION)
    end
    local s, ns = hold_of(account, budget)
    s, ns = add(account.s, account.ns, s, ns, BILLION)
    lease[UNTIL_S], lease[UNTIL_NS] = s, ns
    memory_s, memory_ns = add(account.s, account.ns, memory_s, memory_ns, BILLION)
    lease[FORGOTTEN_S], lease[FORGOTTEN_NS] = later(memory_s, memory_ns, s, ns)
    -- What is told counts from this answer on.
    if not lease.is_promised then
        lease[PROMISED] = still_promised(account, lease)
        lease[ALL_IN] = lease[PROMISED] > 0 and left_of(account, lease, lease[ALL_IN]) or 0
        lease[LANES] = lease[PROMISED] > 0 and lease[LANES] or 0
    end
    lease[TURN] = lease.turn or left_of(account, lease, lease[TURN])
    lease.is_promised, lease.turn = nil, nil
    lease[SEQUENCE], lease[AT], lease[FIRST], lease[SECOND] =
        ask.sequence, account.at, record[3], record[4]
    lease[COST], lease[LENT], lease[ESCROW], lease[TOKENS] =
        ask.cost, record[6], account.escrow, out(lease)
    local due = next_of(lease)
    account.due = account.leases == 1 and due or min(account.due, due)
    keep_lease(account, ask.node, lease)
    account.is_changed = true
end

local RECORD_FORMAT = string.sub(string.rep('%d ', 13), 1, -2)

-- What the node of a lease was told last.
local function told(lease)
    return format(RECORD_FORMAT, RECORD, lease[AT], lease[FIRST], lease[SECOND], lease[COST],
        lease[LENT], lease[ESCROW], lease[BEGAN], lease[TOKENS], lease[PROMISED], lease[ALL_IN],
        lease[LANES], lease[TURN])
end

-- Takes back what was spent in vain, if it was ever there and can be.
local function undo(account, budget, ask)
    local first, second = budget.state(account)
    budget.undo(account, ask)
    budget.hold_down(account, account.s, account.ns)
    local first_now, second_now = budget.state(account)
    if first ~= first_now or second ~= second_now then account.is_changed = true end
end

-- Leaves a key that has its whole budget, and nobody who holds any of it. One that is not known and counts as
-- used up because of a loss gets something back as well.
local function forget(account, budget)
    if LOST > 0 then
        -- A key that is not there would be taken for one that was lost.
        account.changed, account.is_stale, account.is_changed = {}, account.is_known, true
        account.escrow, account.hungry, account.leases, account.due = 0, 0, 0, 0
        for _, name in ipairs(budget.fields) do account[name] = 0 end
        save(account, budget)
    elseif account.is_known then
        call('DEL', account.key)
    end
    return format('%d %d', FORGOTTEN, (account.is_known or account.lost) and 1 or 0)
end

-- What the key brings along, if it does, and where there is something to spend.
local function carry(account, budget, ask)
    if not ask.carried or not budget.carry or (account.is_known and not ask.of_known) then return end
    ask.since_s, ask.since_ns = split(max(account.at - ask.ago, 0))
    local first, second = budget.state(account)
    budget.carry(account, ask)
    local first_now, second_now = budget.state(account)
    if first ~= first_now or second ~= second_now then account.is_changed = true end
end

local function read_ask(budget)
    local ask = { node = text() }
    if ask.node == CARRIED then
        ask.carried, ask.ago, ask.of_known, ask.node = number(), number(), number() == 1, text()
    end
    ask.cost = number()
    if ask.node == UNDO then
        ask.node, ask.undone, ask.cost = nil, ask.cost, 0
        ask.then_s, ask.then_ns = split(number())
    elseif ask.node == FORGET then
        ask.node, ask.is_forgotten = nil, true
    elseif ask.node ~= '' then
        ask.node = 'lease ' .. ask.node
        ask.sequence, ask.lease_epoch, ask.lease_began = number(), number(), number()
        ask.used, ask.returned, ask.want, ask.least = number(), number(), number(), number()
    else
        ask.node = nil
    end
    if budget.read then budget.read(ask) end
    return ask
end

-- The lease that a node has of a key, if it has one.
local function lease_of(account, node)
    if account.changed[node] ~= nil then return account.changed[node] or nil end
    local line = not account.line and not account.is_stale and call('HGET', account.key, node)
    return line and read_lease(account, line) or nil
end

-- The answer to one question.
local function exchange(key, budget)
    local ask = read_ask(budget)
    local account, wrong = load(key, budget)
    if not account then return format('%d %s', FOREIGN, (string.gsub(wrong, '%s', ' '))) end
    if ask.is_forgotten then return forget(account, budget) end
    if not budget.settle(account, ask) then
        -- The time that counts: later than that of the clock, if it was set back.
        return format('%d %s', OTHER_WINDOW, digits(account.at))
    end
    advance(account, budget)
    if budget.left_ahead and is_lent and (account.leases == 0 or not account.lanes) then
        -- What is missing then is nobody's: it was lent by a memory that is lost. There are leases without
        -- lanes if a node that takes itself for further away than others does not have the limit lent.
        local missing = budget.missing(account)
        account.lanes = { missing, missing, missing, missing, 0 }
    end
    local lease = ask.node and lease_of(account, ask.node)
    if account.is_garbled then return GARBLED end
    carry(account, budget, ask)
    if ask.node then
        if lease and ask.sequence <= lease[SEQUENCE] then
            if ask.carried then save(account, budget) end
            return ask.sequence < lease[SEQUENCE] and digits(OVERTAKEN) or told(lease)
        end
        if lease then
            settle(account, budget, lease, ask)
        else
            lease = admit(account, ask)
            if account.is_garbled then return GARBLED end
        end
    end
    if ask.undone then undo(account, budget, ask) end
    local first, second = budget.state(account)
    local record = { RECORD, account.at, first, second, ask.cost, 0, 0, -1, 0, 0, 0, 0, 0 }
    if budget.reusable then
        record[6] = ask.node and
            lend(account, budget, lease, ask.want + ask.cost, max(ask.least, ask.cost)) or 0
    else
        if budget.spend(account, ask) then account.is_changed = true end
        record[6] = ask.node and lend(account, budget, lease, ask.want, ask.least) or 0
    end
    record[7] = account.escrow
    if lease then
        remember(account, budget, lease, ask, record)
        record[8], record[9] = lease[BEGAN], out(lease)
        record[10], record[11] = lease[PROMISED], lease[ALL_IN]
        record[12], record[13] = lease[LANES], lease[TURN]
    end
    -- Whoever only looks at what a key brings along leaves it there.
    local is_look = not ask.node and not ask.undone and ask.cost == 0
    if not (ask.carried and is_look) then save(account, budget) end
    return format(RECORD_FORMAT, unpack(record))
end

-- Answers questions about keys of a budget.
local function exchange_of(budget)
    budget.all_fields = {}
    for _, name in ipairs(COMMON) do table.insert(budget.all_fields, name) end
    for _, name in ipairs(budget.fields) do table.insert(budget.all_fields, name) end
    if budget.left_ahead then table.insert(budget.all_fields, 'lanes') end
    return function(key) return exchange(key, budget) end
end
