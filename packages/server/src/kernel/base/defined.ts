/** The members that are not `undefined`: an optional member is left out, and never `undefined`. */
export function defined<T extends object>(members: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  const given = Object.entries(members).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given) as { [Name in keyof T]?: Exclude<T[Name], undefined> }
}
