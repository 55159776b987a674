/** `npm test` sets it, to a number that is the same for every run on one commit. */
const TURN = process.env.WEBMQ_TEST_TURN

/**
 * What is the same suite on other brokers, clients or transports: `npm test` plays a part, in turns by commit. Everything
 * else plays all.
 * @param turns Turns that together play all.
 */
export function inTurn<T>(all: readonly T[], turns = all.length): readonly T[] {
  return TURN === undefined ? all : all.filter((_, index) => index % turns === Number(TURN) % turns)
}

/** The first, which most users have, plays each time. */
export function firstAndInTurn<T>([first, ...others]: readonly [T, ...T[]]): readonly T[] {
  return [first, ...inTurn(others)]
}
