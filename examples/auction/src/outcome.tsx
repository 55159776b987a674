import type { AuctionEvent } from './events'
import { euros } from './money'
import type { Bid } from './use-bid'

/** How it stands for this page: its bid leads, was outbid, came too late or was refused; and who has won. */
export function Outcome({
  last,
  bid,
  me,
}: {
  readonly last?: AuctionEvent | undefined
  bid: Bid
  readonly me: string
}) {
  const { text, isLost } = outcomeOf(last, bid, me)
  return <output className={isLost ? 'lost' : ''}>{text}</output>
}

function outcomeOf(last: AuctionEvent | undefined, { state, answer }: Bid, me: string) {
  const lost = (text: string) => ({ text, isLost: true })
  if (last?.type === 'closed') {
    if (last.winner === undefined) return lost('Nobody has bid')
    const price = euros(last.amount ?? 0)
    if (last.winner === me) return { text: `You have won for ${price}`, isLost: false }
    return lost(`${last.winner} has won for ${price}`)
  }
  if (state === 'sending') return { text: 'Sending …', isLost: false }
  if (answer?.isAccepted === false) return lost(refusalOf(answer.reason, answer.minimum))
  if (answer === undefined || last === undefined) return { text: '', isLost: false }
  // A bid that came before ours may be shown last until ours arrives.
  if (last.seq <= answer.seq) return { text: 'Your bid is the highest', isLost: false }
  return last.bidder === me ? { text: 'Your bid is the highest', isLost: false } : lost(`${last.bidder} has outbid you`)
}

function refusalOf(reason: string, minimum: number | undefined): string {
  switch (reason) {
    case 'too-low':
      return `Too low: at least ${euros(minimum ?? 0)}`
    case 'closed':
      return 'Too late'
    default:
      return `Refused: ${reason}`
  }
}
