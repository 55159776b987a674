/** A box for each price. */
export class Board {
  readonly #parent: HTMLElement
  readonly #boxes = new Map<string, HTMLElement>()

  constructor(selector: string) {
    this.#parent = document.querySelector(selector) as HTMLElement
  }

  show(key: string, price: number): void {
    const box = this.#boxOf(key)
    const text = price.toFixed(2)
    const change = Number(text) - Number(box.textContent || text)
    if (change !== 0) box.dataset.trend = change > 0 ? 'up' : 'down'
    box.textContent = text
  }

  hide(key: string): void {
    this.#boxes.get(key)?.remove()
    this.#boxes.delete(key)
  }

  setStale(isStale: boolean): void {
    this.#parent.classList.toggle('is-stale', isStale)
  }

  #boxOf(key: string): HTMLElement {
    const known = this.#boxes.get(key)
    if (known !== undefined) return known
    const box = document.createElement('div')
    box.className = 'price'
    box.dataset.key = key
    this.#boxes.set(key, box)
    this.#parent.append(box)
    return box
  }
}
