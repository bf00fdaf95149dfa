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
