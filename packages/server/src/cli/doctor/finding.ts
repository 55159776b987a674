/** `skip`: not checked, for the reason in `text`. */
export type FindingStatus = 'ok' | 'warn' | 'fail' | 'skip'

export interface Finding {
  readonly check: string
  readonly status: FindingStatus
  /** One sentence. May repeat what the server says, so a terminal gets it escaped. */
  readonly text: string
  /** What to do about a warning or a failure. */
  readonly advice?: string
}

const of =
  (status: FindingStatus) =>
  (check: string, text: string): Finding => ({ check, status, text })
const withAdvice =
  (status: FindingStatus) =>
  (check: string, text: string, advice: string): Finding => ({ check, status, text, advice })

export const ok = of('ok')
export const skipped = of('skip')
export const warning = withAdvice('warn')
export const failure = withAdvice('fail')
