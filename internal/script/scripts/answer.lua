-- answer describes a claim and its view: {status and time, incarnation, ticket,
-- flags, wait, sum, digest, sum and digest of all, lower ids and weights}. Above
-- the flags is how many claims are before one without a vote. The list is of
-- the claims from a ticket on, so that many that have been there for long cost
-- nothing. Where it is too long, the totals are of all claims with votes but
-- this one: those below it, and others. Were nothing told then, a client could
-- not find out that there is room, however long it asks. A list comes with
-- those totals as well, as at another node the list may be too long.
local ticket = t + 0
local r = { at + 1, inc + 0, ticket, unvoted > (mine and 1 or 0) and 2 or 0, 0 }
if limit then
  r[4], r[6], r[7], r[8], r[9] = r[4] + 32, 0, 0, tonumber(limit), tonumber(since)
end
if mine then
  -- The wait is a guess when asking again may help: when all of up to eight
  -- waiters ahead could be gone, and the holder.
  local rank = call('ZRANK', K[3], id) or 0
  r[4] = r[4] + 128 * rank
  -- The leases that it has to wait for are looked at for up to eight waiters: to
  -- read one for each would cost too much. Behind more of them it asks when the
  -- first lease may have ended, and those further back a little later, so that
  -- many do not ask at one moment.
  -- barred: the head is unvoted, because the redlock key is another client's.
  local barred = C == solo and voted == 0
  if barred and rank > 0 then r[4] = r[4] + 64 end
  if barred and rank == 0 then
    local rest = call('PTTL', K[1])
    r[4], r[5] = r[4] + 4, rest < 0 and 0 or math.max(1, rest)
  elseif rank - voted < 9 then
    local from, till = voted, swept and now or soon + 0
    if C == solo then from, till = 0, 0 end
    if from < rank then
      for _, s in ipairs(call('HMGET', K[4], unpack(call('ZRANGE', K[3], from, rank - 1)))) do
        local x = match(s or '', '^%d+ %d+ (%d+)')
        if x and x - till > 0 then till = x end
      end
    end
    r[5] = math.max(1, till - now)
  else
    r[5] = math.max(1, (swept and now or soon) - now) + math.floor(rank * ttl / 4096)
  end
else
  r[4] = r[4] + 1
  local ids = from
  if from then
    if from ~= '-inf' and tonumber(from) > ticket then from = t end
    ids = call('ZRANGEBYSCORE', K[3], from, bound, 'LIMIT', 0, 8 * most + 1)
    if ids[8 * most + 1] then ids = nil end -- too long: the client asks for a shorter one
  end
  if ids then
    r[4], r[6], r[7] = r[4] + 24, tonumber(sum), tonumber(digest)
    r[#r + 1] = sum - w
    r[#r + 1] = (digest - digestOf(id)) % 4503599627370496
    for i, s in ipairs(call('HMGET', K[4], unpack(ids))) do
      local u, v = match(s or '', claim)
      if u and tonumber(u) < ticket then
        r[#r + 1] = ids[i]
        r[#r + 1] = tonumber(v)
      elseif u then
        r[6], r[7] = r[6] - v, (r[7] - digestOf(ids[i])) % 4503599627370496
      end
    end
  elseif t == bound or from then
    r[4] = r[4] + 8
    if C ~= solo then
      r[6], r[7] = sum - w, (digest - digestOf(id)) % 4503599627370496
    end
  end
end
-- One text is less work for a node than a list of which it finds the length
-- later.
if not r[6] then return clock[1] .. ' ' .. clock[2] .. ' ' .. inc .. ' ' .. t .. ' ' .. r[4] .. format(' %.0f', r[5]) end
return r
