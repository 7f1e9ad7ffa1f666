-- What a loss of memory means to windows.

-- When a window that is not known, or of a former memory, was lost; nothing if it was not. A short one
-- is taken for lost with every memory. A long one goes on with what was kept, but what was lost before
-- that stays lost, of those that were not written since.
local function window_loss(is_short, former)
    local lost = LOST
    if lost > 0 and KEPT > 0 and not is_short then
        lost = (KEPT > 1 and (former or 0) < ROOT) and KEPT or 0
    end
    return lost > 0 and lost or nil
end
