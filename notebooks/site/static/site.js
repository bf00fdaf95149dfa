// Loads the translator into the home page when it is asked for: it weighs megabytes.
for (const button of document.querySelectorAll('.live-open')) {
  button.addEventListener('click', () => {
    const frame = document.createElement('iframe');
    frame.src = button.dataset.page;
    frame.title = 'Translator';
    frame.className = 'live-frame';
    button.closest('.live').append(frame);
    button.disabled = true;
  });
}

// What scrolls can be reached with the keyboard; what does not is no stop of it.
const watched = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute('tabindex');
  }
});
const SCROLLING = 'article :is(pre, .table-wrapper, .cell_output, div.math)';
for (const box of document.querySelectorAll(SCROLLING)) watched.observe(box);
