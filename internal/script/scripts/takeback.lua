-- takeback: a holder is stored at its ticket, below the fence, if it fits
-- there. Claims with higher tickets lose their votes, the highest first, until
-- there is room. So votes are as if the claim had been there all along. After a
-- Resize none loses its vote: a holder could not get it back.
--
-- Invariant: the fence stays. Without that the next claim could get a ticket
-- below that of one that has been here. Invariant: no claim has that ticket
-- here. Two holders with one ticket would have one fencing token.
if back and not clash and A[7] + 0 > 0 and A[7] - F < 0 and (not t or A[7] - t < 0) and not call('ZRANGEBYSCORE', K[3], A[7], A[7])[1] then
  local own, weight, losers = t and t - bound <= 0, A[8], {}
  if t and w - A[8] < 0 then weight = w end -- a weight only ever gets smaller
  -- Its own vote, at the higher ticket, takes no room: that place is given up.
  -- An empty queue has the capacity of this claim.
  local room = (voted + unvoted > 0 and C or limit or A[5]) - sum - weight + (own and w or 0)
  if room < 0 and not limit then
    -- Claims with votes below it keep them: it does not fit then, and stays
    -- where it is. One more than the portion is read, as the claim itself may
    -- be among them.
    local ids = voted > 0 and call('ZRANGE', K[3], math.max(0, voted - most - 1), voted - 1) or {}
    local all = ids[1] and call('HMGET', K[4], unpack(ids)) or ids
    for i = #ids, 1, -1 do
      local u, v, _, g = match(all[i] or '', claim)
      if room >= 0 or #losers == most or not u or u - A[7] < 0 then break end
      if ids[i] ~= id then
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
    -- It goes from its old place first: withdraw.lua finds the last claim with
    -- a vote by its rank.
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
