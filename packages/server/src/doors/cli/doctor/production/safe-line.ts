/** A line that must stand in a file. */
export interface SafeLine {
  readonly check: string
  readonly file: string
  readonly holds: RegExp
  readonly text: string
  readonly advice: string
}

/** @param text What is wrong without it. @param advice What to write. */
export const line = (check: string, file: string, holds: RegExp, text: string, advice: string): SafeLine => ({
  check,
  file,
  holds,
  text,
  advice,
})
