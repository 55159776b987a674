/** Gives every line its colour and marker, the same in all plots. */
export type LookOf = (seriesName: string) => number

/** A plot with its caption. @param captionHtml HTML. @param svg As made by the plot modules. */
export function figure(captionHtml: string, svg: string): string {
  return `<figure><figcaption>${captionHtml}</figcaption>${svg}</figure>`
}
