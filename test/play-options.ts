const SECONDS_PER_MINUTE = 60

/**
 * Runs a play with the options of its command line. It prints the usage for `--help`, and for options that are none.
 * @returns What the play returns; 0 for `--help`, 2 for options that are none.
 */
export async function playWith<Options>(
  args: readonly string[],
  { usage, read }: { readonly usage: string; readonly read: (args: readonly string[]) => Options | undefined },
  play: (options: Options) => Promise<number>,
): Promise<number> {
  let options: Options | undefined
  try {
    options = read(args)
  } catch (error) {
    process.stdout.write(`${(error as Error).message}\n\n${usage}\n`)
    return 2
  }
  if (options !== undefined) return await play(options)
  process.stdout.write(`${usage}\n`)
  return 0
}

/** @throws {Error} for one that is none of the names. */
export function brokersOf<Name extends string>(text: string, names: readonly Name[]): Name[] {
  return text.split(',').map((name) => {
    const known = names.find((broker) => broker === name)
    if (known === undefined) throw new Error(`--broker: ${name} is none of ${names.join(', ')}`)
    return known
  })
}

/** Of `--seconds`, or else of `--minutes`. @throws {Error} for no number. */
export function secondsOf({ seconds, minutes }: { readonly seconds?: string | undefined; readonly minutes: string }) {
  return seconds === undefined ? SECONDS_PER_MINUTE * numberOf('minutes', minutes) : numberOf('seconds', seconds)
}

/** @throws {Error} for what is no number above 0. */
export function numberOf(name: string, text: string): number {
  const number = Number(text)
  if (!(number > 0)) throw new Error(`--${name}: ${text} is no number above 0`)
  return number
}
