-- leave: the claim is gone. The only request that a recovering node obeys: to
-- take a claim away is safe at any time, to vote for the next one is not. It is
-- answered by 1. The fast path: the claim is alone. Its state begins like that
-- of one claim at the fence in open.lua, with this claim's id. Neither the time
-- nor the marker matters. A leave is carried out also at maxmemory: see
-- full.lua. The DEL of the redlock key is such a write as well.
--
-- ARGV  1 what the state begins with when the claim is alone: "S<ticket> <id>+"  2 guard, and how long the
--       state is kept; 3 capacity, if not 1
local K, A, call, try = KEYS, ARGV, redis.call, redis.pcall
local state, plain, head = try('GETRANGE', K[2], '0', '4095'), try('GETRANGE', K[1], '0', '32'), A[1]
local id = string.sub(head, -33, -2)
if state.err then return state end
if string.find(state, head, 1, true) == 1 then
  if plain == id and not A[3] and not K[6] then
    call('DEL', K[1])
  else
    call('DEL', K[3]) -- the write that needs no memory: a lone claim has no queue
  end
  -- Released. The fence is kept for as long as the state of the claim would have been: until a
  -- retention after the end of its lease.
  call('SETRANGE', K[2], '0', 'R')
  return 1
end
local guard, keep = string.match(A[2], '^(%d+) (%d+)$')
--@ handover
--@ read
local px, capacity, patient, flags = '0', A[3] or '1', false
--@ open
--@ full
if fence and not (live and cf + 0 < 2 and recovering <= 0) then
  -- The redlock key is looked at even when the claim is unknown: the two may
  -- have been lost apart.
  if classic and plain == id then call('DEL', K[1]) end
  if cid == id then call('SET', K[2], 'R' .. fence .. ' ' .. fenceOf, 'PX', keep) end
  return 1
end
--@ queue
--@ advance

local t, w, _, f = match(call('HGET', K[4], id) or '', claim)
-- The redlock key goes, unless the next one takes it.
local key = plain == id and (classic or t and C == solo)
if key then plain = false end
if t then
  changed, stale = true, '1'
  if t - bound <= 0 then
    --@ withdraw
  end
  unvoted = unvoted - 1
  call('ZREM', K[3], id)
  call('HDEL', K[4], id)
end
--@ advance
if key and not plain then call('DEL', K[1]) end
--@ rest
--@ save
return 1
