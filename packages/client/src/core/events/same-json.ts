/**
 * Whether two values have the same JSON. `false` also for values too deep to be written: they come from other clients,
 * and `JSON.stringify` throws a `RangeError` for them.
 */
export function isSameJson(one: unknown, other: unknown): boolean {
  try {
    return JSON.stringify(one) === JSON.stringify(other)
  } catch {
    return false
  }
}
