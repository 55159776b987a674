import type { FormEvent } from 'react'

/** Asks for an amount in euros, from `minimum` cents. */
export function BidForm({ minimum, place }: { readonly minimum: number; readonly place: (amount: number) => void }) {
  function bid(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    const { euros } = Object.fromEntries(new FormData(event.currentTarget))
    event.currentTarget.reset()
    place(Math.round(Number(euros) * 100))
  }
  // The gateway decides. The price may have changed before the bid arrives, so the form forbids no amount.
  return (
    <form onSubmit={bid}>
      <input
        name="euros"
        aria-label="Your bid"
        type="number"
        min="0.01"
        step="0.01"
        placeholder={(minimum / 100).toFixed(2)}
        required
      />
      <button type="submit">Bid</button>
    </form>
  )
}
