/** The parts of a text between separators, without the white space around them and without empty ones. */
export function listParts(text: string, separator = ','): string[] {
  const parts = text.split(separator).map((part) => part.trim())
  return parts.filter((part) => part !== '')
}
