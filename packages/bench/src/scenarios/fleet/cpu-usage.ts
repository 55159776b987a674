import type { UsageSample } from './observation.js'

export type UsageMember = keyof Omit<UsageSample, 'atUs'>

/** CPU seconds up to a moment, on a line between two samples; `null` where unknown. */
export function usedAt(usage: readonly UsageSample[], member: UsageMember, atUs: number): number | null {
  const index = usage.findIndex((sample) => sample.atUs >= atUs)
  const after = index === -1 ? usage.at(-1) : usage[index]
  const before = index > 0 ? usage[index - 1] : after
  const [from, to] = [before?.[member] ?? null, after?.[member] ?? null]
  if (before === undefined || after === undefined || from === null || to === null) return null
  const share = after.atUs === before.atUs ? 0 : (atUs - before.atUs) / (after.atUs - before.atUs)
  return from + (to - from) * Math.min(1, Math.max(0, share))
}

/** CPU seconds of a span; `null` where unknown. */
export function usedBetween(
  usage: readonly UsageSample[],
  member: UsageMember,
  { startUs, endUs }: { readonly startUs: number; readonly endUs: number },
): number | null {
  const from = usedAt(usage, member, startUs)
  const to = usedAt(usage, member, endUs)
  return from === null || to === null ? null : to - from
}
