import { euros } from './money'

const WIDTH = 300
const HEIGHT = 56
const MARGIN = 4

/** How a price has risen, bid by bid. */
export function Course({ amounts }: { readonly amounts: readonly number[] }) {
  const [low, high] = [Math.min(...amounts), Math.max(...amounts)]
  const yOf = (amount: number) => HEIGHT - MARGIN - ((HEIGHT - 2 * MARGIN) * (amount - low)) / (high - low || 1)
  const xOf = (index: number) => (WIDTH * index) / amounts.length
  const steps = amounts.map((amount, index) => `V${yOf(amount)}H${xOf(index + 1)}`)
  return (
    <svg className="course" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img">
      <title>{`From ${euros(low)} to ${euros(high)}`}</title>
      <path d={`M0 ${yOf(amounts[0] ?? 0)}${steps.join('')}`} />
    </svg>
  )
}
