-- leave: the claim is gone. The only request that a recovering node obeys: to
-- take a claim away is safe at any time, to vote for the next one is not. It is
-- answered by 1. The fast path: the claim is alone. Its state begins like that
-- of one claim at the fence in open.lua, with this claim's id. Neither the time
-- nor the marker matters. A leave is carried out also at maxmemory: see
-- full.lua. The DEL of the redlock key is such a write as well.
local state, plain = redis.pcall('GETRANGE', KEYS[2], '0', '4095'), redis.pcall('GETRANGE', KEYS[1], '0', '32')
local fence, only = string.match(state.err and '' or state, '^(S%d+ (%x+))%+')
if only == ARGV[1] then
  if plain == only and ARGV[5] == '1' and not KEYS[6] then
    redis.call('DEL', KEYS[1])
  else
    redis.call('PEXPIRE', KEYS[2], ARGV[4])
  end
  redis.call('SET', KEYS[2], fence, 'PX', ARGV[4])
  return 1
end
if state.err then return state end
--@ handover
--@ open
--@ full
if fence and not (live and cf + 0 < 2 and recovering <= 0) then
  -- The redlock key is looked at even when the claim is unknown: the two may
  -- have been lost apart.
  if classic and plain == id then call('DEL', K[1]) end
  if cid == id then call('SET', K[2], 'S' .. fence .. ' ' .. fenceOf, 'PX', keep) end
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
