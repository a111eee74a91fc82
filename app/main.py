"""The script of every run: configuration and navigation only."""

from __future__ import annotations

_SIDEBAR = 282
"""An even number of pixels. Columns in sixteenths of the page beside it then have widths of at most
six digits. plotly reads no more, and draws a figure again where its width has more."""


def main() -> None:
    """Set up the app and run the chosen page."""
    import streamlit as st

    from app.shared import server_process

    server_process.begin()
    from app.shared import account, in_browser, jobs_badge, sign_in
    from app.shared.drawings import drawing
    from app.shared.navigation import pages
    from app.shared.session import note_page, open_task, reporting_errors

    sign_in.note()
    # before the navigation, which would fetch the icon of a page from elsewhere
    st.set_page_config(page_icon=drawing("mark.svg"), layout="wide", initial_sidebar_state=_SIDEBAR)
    st.logo(drawing("logo.svg"), size="large", icon_image=drawing("mark.svg"))
    if st.query_params or sign_in.is_on():
        server_process.ready_for_all_pages()
    if account.must_sign_in():
        st.navigation(pages(None), position="hidden")  # every address leads to the same screen
        account.first_screen()
        in_browser.show()
        return
    shown = st.navigation(pages(open_task()), expanded=True)
    note_page()
    st.set_page_config(page_title=f"{shown.title} - kdcal")
    if shown.url_path:  # the first page has none, and needs little until there is a review
        server_process.ready_for_all_pages()
    account.in_sidebar()
    try:
        with reporting_errors():
            shown.run()
    finally:  # the jobs of the page are shown even if it fails
        jobs_badge.show()
        in_browser.show()


# child processes of the core import this file as "__mp_main__" and must not draw the app
if __name__ == "__main__":
    main()
