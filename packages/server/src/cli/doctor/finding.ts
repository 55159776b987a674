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

export function ok(check: string, text: string): Finding {
  return { check, status: 'ok', text }
}

export function skipped(check: string, text: string): Finding {
  return { check, status: 'skip', text }
}

export function warning(check: string, text: string, advice: string): Finding {
  return { check, status: 'warn', text, advice }
}

export function failure(check: string, text: string, advice: string): Finding {
  return { check, status: 'fail', text, advice }
}
