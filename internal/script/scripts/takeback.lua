-- takeback: a holder is stored at its ticket, below the fence, if it fits there. Claims with higher tickets lose
-- their votes, the highest first, until there is room. So votes are as if the claim had been there all along. After a
-- Resize none loses its vote: a holder could not get it back.
if back and not clash and A[7] + 0 > 0 and A[7] - F < 0 and (not t or A[7] - t < 0) and not call('ZRANGEBYSCORE', K[3], A[7], A[7])[1] then
  local own, weight, losers = t and t - bound <= 0, A[8], {}
  if t and w - A[8] < 0 then weight = w end
  local room = (voted + unvoted > 0 and C or limit or A[5]) - sum - weight + (own and w or 0)
  if room < 0 and not limit then
    local ids = call('ZREVRANGEBYSCORE', K[3], bound, '(' .. A[7], 'LIMIT', 0, most + 1)
    for i, s in ipairs(ids[1] and call('HMGET', K[4], unpack(ids)) or ids) do
      local u, v, _, g = match(s or '', claim)
      if room >= 0 or #losers == most then break end
      if u and ids[i] ~= id then
        losers[#losers + 1] = { ids[i], u, v, g }
        room = room + v
      end
    end
  end
  if room >= 0 then
    low, passed = true, F
    if C == solo and plain == id then
      call('DEL', K[1])
      plain = false
    end
    if t then
      call('ZREM', K[3], id)
      if own then
        --@ withdraw
      end
      t, w = A[7], weight
    end
    for _, loser in ipairs(losers) do
      local id, t, w, f = unpack(loser)
      --@ withdraw
      if C == solo and plain == id then
        call('DEL', K[1])
        plain = false
      end
    end
  end
end
