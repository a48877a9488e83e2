-- beat: the claim lives on, and hears how it stands. Also at maxmemory, see full.lua:
-- in the uncontended case the PEXPIRE is the write that needs no memory.
--
-- ARGV  1 id  2 ttl  3 how long the state is kept  4 guard; 5 capacity, if not 1
--       6 flags: 2 list, 8 not patient  7 of a list: the ticket that it begins with
--@ read
local id, px, keep, guard, capacity, flags = A[1], A[2], A[3], A[4], A[5] or '1', A[6] or '0'
--@ open
if recovering > 0 then return { at + 3, tonumber(inc), recovering } end
local list = flags % 4 >= 2

-- A renewal is the most frequent request of all. Here it is one read and two
-- writes, and the text of the state is the one that batch.lua compares. A claim
-- that has the vote and is not dropped yet may be renewed.
if fence and cid == id and (live or cf + 0 > 1 and flags + 0 < 8) and not (limit and cf + 0 < 2 and cw - limit > 0) then
  local says, hint = 1, 0
  if classic then
    local plain
    --@ plain
    if (plain ~= id or call('PEXPIRE', K[1], px) == 0) and (plain ~= '' and plain ~= id or not call('SET', K[1], id, 'PX', px, 'NX')) then
      says, hint = 4, call('PTTL', K[1])
      hint = hint < 0 and 0 or math.max(1, hint)
    end
  end
  if not classic or says > 1 then call('PEXPIRE', K[2], keep) end
  local whose = ct == fence and cid == fenceOf and '+' .. cap .. ' ' or ' ' .. cap .. ' ' .. id .. ' ' .. ct .. ' '
  call('SET', K[2], 'S' .. fence .. ' ' .. fenceOf .. whose .. cw .. ' ' .. now + ttl
    .. (cf % 2 == 1 and (says == 1 and ' 3 ' or ' 1 ') or says == 1 and ' 2 ' or ' 0 ') .. co, 'PX', keep)
  says = says > 1 and format('4 %.0f', hint) or list and '25' or '9'
  if limit then return { at + 1, tonumber(inc), tonumber(ct), says + 32, 0, 0, 0, tonumber(limit), tonumber(since), list and 0 or nil, list and 0 or nil } end
  return clock[1] .. ' ' .. clock[2] .. ' ' .. inc .. ' ' .. ct .. ' ' .. says
end
local patient = flags + 0 < 8
-- Another's claim without a vote waits for a redlock key that may have gone by
-- now: the queue will see.
if fence and not (cid and (live or patient) and cf + 0 < 2) then
  if cid and not live and not patient then -- its lease has ended, and a patient request must not find it any more
    call('PEXPIRE', K[2], keep)
    call('SET', K[2], 'S' .. fence .. ' ' .. fenceOf, 'PX', keep)
  end
  return { at + 2, tonumber(inc), tonumber(fence) }
end
--@ full
--@ queue
--@ advance

-- A claim that is not here gets no lease: where it was, a later claim may have
-- got the vote since. Its client settles it again (rule 6), and the ticket
-- decides.
local t, w, _, f, o = match(call('HGET', K[4], id) or '', claim)
if t then
  --@ keep
  --@ advance
end
--@ rest
--@ save
if not t then return { at + 2, tonumber(inc), tonumber(F) } end
local from = list and A[7]
--@ answer
