-- inspect: the claims queued here, in order, without changing anything. A claim
-- whose lease has ended is left out; it goes with the next request to the name.
-- Only the first hundred claims are looked at: the others count as queued.
--
-- An eviction is pushed to the owner of a claim, and nothing is kept of it.
--
-- KEYS as in open.lua (1 to 5)   ARGV  1 the most claims to tell, 2 the ticket of a claim that is evicted (0: none)
-- Returns {fence, claims queued, what another client's redlock key has left (0: none),
-- since when this node has remembered, in milliseconds until now (0 while it may have forgotten a lease),
-- the capacity (0: no claim is queued), how many claims have a vote,
-- what is left of the lease of the claim that is evicted (0: it is not here),
-- how many clients that was pushed to, plus 1 (0: it has no vote), and for each claim: id, ticket, weight, left, voted, owner}
local K, call, match = KEYS, redis.call, string.match
local clock = call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local state = call('GETRANGE', K[2], '0', '4095')
if state == '' then state = 'R0 0' end
local fence = match(state, '^[QRS](%d+)')
if not fence or #state > 4095 then return redis.error_reply('WRONGTYPE ' .. K[2] .. ' holds something else') end
local inc, born, guard = match(call('GETRANGE', K[5], '0', '1023'), '^(%d+) (%d+) %S+ (%d+)')
if not born then return redis.error_reply('OTHERSET this node is not of that set') end
-- A node that may have forgotten a lease says nothing about holders: an
-- onlooker would take the name for free.
local memory = now - born
if memory < tonumber(guard) then memory = 0 end
local reply, queued, votes, ours = { tonumber(fence), 0, 0, memory, 0, 0, 0, 0 }, 0, 0, {}
local function tell(id, ticket, weight, expiry, voted, owner)
  ours[id] = true
  if tonumber(expiry) <= now then return end
  queued = queued + 1
  if voted then votes = votes + 1 end
  if queued > tonumber(ARGV[1]) then return end
  for _, v in ipairs({ id, tonumber(ticket), tonumber(weight), expiry - now, voted and 1 or 0, owner }) do
    reply[#reply + 1] = v
  end
end
local function evict(id, ticket, expiry, voted, owner)
  if ticket ~= ARGV[2] or tonumber(expiry) <= now then return end
  reply[7] = expiry - now
  if voted then reply[8] = 1 + call('PUBLISH', match(owner, '^%S*'), 'e ' .. now .. ' ' .. inc .. ' ' .. id .. ' ' .. ticket) end
end
local ticket, id, cap, weight, expiry, flags, owner = match(state, '^S(%d+) (%x+)%+(%d+) (%d+) (%d+) (%d) (.*)$')
if not id then
  cap, id, ticket, weight, expiry, flags, owner = match(state, '^S%d+ %x+ (%d+) (%x+) (%d+) (%d+) (%d+) (%d) (.*)$')
end
if id then
  tell(id, ticket, weight, expiry, flags + 0 > 1, owner)
  evict(id, ticket, expiry, flags + 0 > 1, owner)
elseif string.sub(state, 1, 1) == 'Q' then
  local bound, voted, unvoted
  cap, bound, voted, unvoted = match(state, '^Q%d+ %x+ (%d+) %d+ %d+ (%d+) (%d+) (%d+)')
  local claims = call('ZRANGE', K[3], 0, 99)
  for _, claim in ipairs(claims) do
    local t, w, x, _, o = match(call('HGET', K[4], claim) or '', '^(%d+) (%d+) (%d+) (%d) (.*)$')
    if t then tell(claim, t, w, x, tonumber(t) <= tonumber(bound), o) end
  end
  for _, claim in ipairs(ARGV[2] ~= '0' and call('ZRANGEBYSCORE', K[3], ARGV[2], ARGV[2]) or {}) do
    local t, _, x, _, o = match(call('HGET', K[4], claim) or '', '^(%d+) (%d+) (%d+) (%d) (.*)$')
    if t then evict(claim, t, x, tonumber(t) <= tonumber(bound), o) end
  end
  queued = queued + math.max(0, voted + unvoted - #claims)
  votes = votes + math.max(0, voted - #claims)
end
if queued > 0 then reply[5] = tonumber(cap) end
-- The redlock key is another client's unless one of the claims here has that
-- id.
local plain = redis.pcall('GETRANGE', K[1], '0', '32')
if plain.err then -- of another type: see plain.lua
  local rest = redis.pcall('PTTL', K[1])
  if type(rest) == 'number' and rest > 0 then reply[3] = rest end
elseif not ours[plain] and not call('HGET', K[4], plain) then
  local rest = call('PTTL', K[1])
  if rest ~= -2 then reply[3] = math.max(1, rest) end
end
reply[2], reply[6] = queued, votes
return reply
