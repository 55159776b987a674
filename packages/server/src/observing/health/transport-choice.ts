/** Which transport runs, and why. */
export interface TransportChoice {
  readonly name: string
  /** `option`: the option `transport` names it. `auto`: it was chosen when the server started. */
  readonly chosen: 'auto' | 'option'
  /** Why it is not the native engine, and how to get that; only when `auto` chose another transport. */
  readonly reason?: string
}

/** A line for the log: which transport runs, why, and what it costs. */
export function describeTransport({ name, chosen, reason }: TransportChoice): string {
  if (chosen === 'option') return `the ${name} transport runs, as the option says`
  if (reason === undefined) return `the ${name} transport runs`
  return `the ${name} transport runs, because ${reason}. It has one thread and delivers several times fewer messages per core than the native engine`
}
