const SECONDS: Readonly<Record<string, number>> = { us: 1e-6, ms: 1e-3, '': 1, s: 1, m: 60, h: 3_600, d: 86_400 }
const BYTES: Readonly<Record<string, number>> = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 }

/** The last value of a key in a unit, in YAML or in a Caddyfile; empty when there is none behind it. */
export function lastValueOf(text: string, key: string): string | undefined {
  const line = new RegExp(`^[ \\t]*${key}(?:[ \\t]*[=:][ \\t]*|[ \\t]+)(["']?)(.*?)\\1[ \\t]*(?:[ \\t]#.*)?$`, 'gm')
  return [...text.matchAll(line)].at(-1)?.[2]
}

/** What is indented below each line that has this form, in YAML and in a Caddyfile, as a text without comments. */
export function blocksOf(text: string, head: RegExp): readonly string[] {
  const lines = text.split('\n').filter((line) => !/^\s*(#|$)/.test(line))
  const depthOf = (line = '') => /^\s*/.exec(line)?.[0].length ?? 0
  return lines.flatMap((line, index) => {
    if (!head.test(line)) return []
    const end = lines.findIndex((other, at) => at > index && depthOf(other) <= depthOf(line))
    return lines.slice(index + 1, end < 0 ? undefined : end).join('\n')
  })
}

/** Where the last of several lines counts: that one alone of each key, and all that begin a block. */
export function linesInForce(text: string): string {
  const lines = text.split('\n')
  const keys = lines.map((line) => /^\s*([^\s=:#%{}]+)[^{]*$/.exec(line)?.[1]?.toLowerCase())
  return lines.filter((_, index) => keys[index] === undefined || !keys.includes(keys[index], index + 1)).join('\n')
}

/** Seconds of `35`, `35s`, `1min 30s`, `1m30s` or `500ms`; 0 of what is no time. */
export function secondsOf(text = ''): number {
  if (text === 'infinity') return Number.POSITIVE_INFINITY
  const parts = text.matchAll(/(\d+(?:\.\d+)?)\s*(us|ms|[smhd]?)/g)
  return [...parts].reduce((sum, [, count, unit = '']) => sum + Number(count) * (SECONDS[unit] ?? 0), 0)
}

/** Of `65536`, `64K`, `1024:65536` (programs raise the first to the second by themselves), or of `soft` and `hard` of YAML. */
export function descriptorsOf(text: string, key: string): number {
  const value = lastValueOf(text, key) ?? ''
  const hard = value === '' ? lastValueOf(blocksOf(text, new RegExp(`^\\s*${key}:`)).at(-1) ?? '', 'hard') : undefined
  const limit = (hard ?? /hard: *(-?\d+)/.exec(value)?.[1] ?? value.split(':').at(-1) ?? '').trim()
  if (/^(infinity|-1)$/.test(limit)) return Number.POSITIVE_INFINITY
  const [, count = 0, unit = ''] = /^(\d+)([KMG]?)$/.exec(limit) ?? []
  return Number(count) * (BYTES[unit] ?? 0)
}
