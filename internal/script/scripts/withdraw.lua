-- withdraw takes the claim (id, t, w, f) out of the voted ones. The claim may
-- still be in the queue or not. Invariant: bound is the ticket of the last
-- claim with a vote. It is found by rank, as those with votes are the lowest.
voted, unvoted = voted - 1, unvoted + 1
if voted == 0 then
  sum, digest, bound, notify = '0', '0', '0', '0'
else
  sum, notify = format('%.0f', sum - w), notify - f
  digest = format('%.0f', (digest - digestOf(id)) % 4503599627370496)
  if t == bound then
    local below = call('ZRANGE', K[3], voted - 1, voted - 1, 'WITHSCORES')
    bound = format('%.0f', tonumber(below[2] or 0))
  end
end
